"""Decode OTLP messages of Kafka by encoding: `otlp_proto`, `otlp_json`, or `otlp`, which tells them apart."""

import gzip
import io
import zlib
from collections.abc import Callable, Mapping
from typing import TypeVar

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.otel import otlp_json, otlp_proto
from ragtide.stream.ingest.otel.spans import Counts, LogBatch, SpanBatch
from ragtide.stream.settings.otel import Encoding

Batch = TypeVar("Batch", SpanBatch, LogBatch)
LARGEST_BATCH = 64 << 20  # bytes, uncompressed
_GZIP = b"\x1f\x8b"
_SPANS: Mapping[str, Callable[[bytes], SpanBatch]] = {
    "otlp_proto": otlp_proto.decode_spans,
    "otlp_json": otlp_json.decode_spans,
}
_LOGS: Mapping[str, Callable[[bytes], LogBatch]] = {
    "otlp_proto": otlp_proto.decode_logs,
    "otlp_json": otlp_json.decode_logs,
}


def decode_spans(value: bytes, encoding: Encoding = "otlp", largest: int = LARGEST_BATCH) -> SpanBatch:
    """Decode a message of a topic of spans.

    Bad spans are left out and counted. Raises `BadRecord` for what is no batch, for a batch of more than `largest`
    bytes, and for one without a single good span.
    """
    batch = _decode(_SPANS, _unzip(value, largest), encoding)
    _check(len(batch.spans), batch.counts, "spans")
    return batch


def decode_logs(value: bytes, encoding: Encoding = "otlp", largest: int = LARGEST_BATCH) -> LogBatch:
    """Decode a message of a topic of logs; as `decode_spans`. Log records that name no span are counted (`no_span`)."""
    batch = _decode(_LOGS, _unzip(value, largest), encoding)
    _check(len(batch.events), batch.counts, "log records")
    return batch


def _decode(decoders: Mapping[str, Callable[[bytes], Batch]], value: bytes, encoding: Encoding) -> Batch:
    if encoding != "otlp":
        return decoders[encoding](value)
    if value.lstrip(b" \t\r\n")[:1] not in (b"{", b"["):
        return decoders["otlp_proto"](value)
    try:
        return decoders["otlp_json"](value)
    except BadRecord as bad:
        # Protobuf begins with 0x0A, which is a line break too. The length after it may be `{` or `[`.
        if value[:1] != b"\n" or bad.reason != "not_json":
            raise
        return decoders["otlp_proto"](value)


def _unzip(value: bytes, largest: int) -> bytes:
    """The message without gzip around it, which some producers add; at most `largest` bytes are ever unpacked."""
    if value[:2] == _GZIP:
        value = _unpack(value, largest)
    if len(value) > largest:
        raise BadRecord("too_big", f"more than {largest} bytes in one batch; have the Collector send smaller ones")
    return value


def _unpack(value: bytes, largest: int) -> bytes:
    """All members of the gzip, one after the other, up to `largest` + 1 bytes."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(value)) as file:
            return file.read(largest + 1)
    except EOFError:
        raise BadRecord("bad_gzip", "the gzip is cut short") from None
    except (gzip.BadGzipFile, zlib.error):
        raise BadRecord("bad_gzip", "the bytes begin as gzip does, and are none, or others follow it") from None


def _check(good: int, counts: Counts, what: str) -> None:
    if counts.refused and not good:
        raise BadRecord("no_readable_item", f"none of the {what} can be read: {describe_counts(counts.refused)}")


def describe_counts(counts: Mapping[str, int]) -> str:
    """As `2 bad_span_id, 1 malformed`."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
