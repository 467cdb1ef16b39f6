"""Decode batches of spans and log records, and sort them by trace: the first half of the stage. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.otel import Counts, LogEvent, Span, decode_logs, decode_spans
from ragtide.stream.ingest.records import DeadLetter, Record, check_readable
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.worker.assembly.assembler import Output
from ragtide.stream.worker.assembly.messages import encode_parts

STAGE = "spans"  # of dead letters
TOO_LARGE = "span_too_large"
_AT_ONCE = 256 << 10  # bytes of messages: decoded spans of many more fit no cache of the processor, at twice the time
_USUAL_PART = 900 << 10  # bytes of a message, which fits the brokers' default limit of 1 MB


@dataclass(slots=True)
class Rekeyed:
    """Messages for kafka.spans_topic, messages that cannot be read, and counts."""

    outputs: list[Output] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    spans: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    adjusted: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _TraceParts:
    spans: list[Span] = field(default_factory=list)
    logs: list[LogEvent] = field(default_factory=list)


def rekey(records: Sequence[Record], otel: OtelSettings, largest: int) -> Rekeyed:
    """Sort the spans and log records of consecutive messages of one topic by trace.

    A trace has one output or more. One of several spans has less than 1 MB, one of a single span up to `largest` bytes.
    A bad span costs that span, and a message that cannot be read that message.
    """
    done = Rekeyed()
    traces: dict[str, _TraceParts] = {}
    size = 0
    for record in records:
        try:
            _decode(record, otel, traces, done)
        except BadRecord as bad:
            done.dead.append(DeadLetter(record, bad.reason, STAGE, bad.detail))
        size += len(record.value or b"")
        if size >= _AT_ONCE:
            _encode(traces, largest, done)
            traces, size = {}, 0
    _encode(traces, largest, done)
    return done


def _encode(traces: Mapping[str, _TraceParts], largest: int, done: Rekeyed) -> None:
    for trace_id, parts in traces.items():
        encoded = encode_parts(parts.spans, parts.logs, min(_USUAL_PART, largest), largest)
        done.outputs += (Output(trace_id.encode(), value) for value in encoded.values)
        if encoded.too_large:
            done.refused[TOO_LARGE] += encoded.too_large


def _decode(record: Record, otel: OtelSettings, traces: dict[str, _TraceParts], done: Rekeyed) -> None:
    check_readable(record)
    if record.value is None:
        raise BadRecord("no_value", "the message has no value; a batch of spans is wanted")
    encoding = otel.encoding(record.topic)
    if record.topic in otel.log_topics:
        logs = decode_logs(record.value, encoding)
        for log in logs.events:
            _parts(traces, log.trace_id).logs.append(log)
        _count(logs.counts, done)
    else:
        spans = decode_spans(record.value, encoding)
        for span in spans.spans:
            _parts(traces, span.trace_id).spans.append(span)
        done.spans += len(spans.spans)
        _count(spans.counts, done)


def _parts(traces: dict[str, _TraceParts], trace_id: str) -> _TraceParts:
    parts = traces.get(trace_id)
    if parts is None:
        parts = traces[trace_id] = _TraceParts()
    return parts


def _count(counts: Counts, done: Rekeyed) -> None:
    for found, total in (
        (counts.refused, done.refused),
        (counts.skipped, done.skipped),
        (counts.adjusted, done.adjusted),
    ):
        if found:
            total.update(found)
