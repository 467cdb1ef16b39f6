"""Messages of the topic of spans by trace (kafka.spans_topic): parts of traces, and marks that a trace was sent.

The key of both is the trace id. A part holds decoded spans and log records, so that reading it again is cheap.
"""

import struct
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.otel import LogEvent, Span, kind_of
from ragtide.stream.ingest.otel.spans import Scope, SpanEvent

_HEAD = struct.Struct(">BBI")  # kind of message with its version, flags, spans
_PART, _SENT = 0x10, 0x20
_HAS_ROOT, _HAS_CHAIN = 1, 2
_CHAINS = ("chain", "agent")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Head(NamedTuple):
    """What a message says before it is decoded.

    `has_root`: a part with an ended span without parent. `has_chain`: one with an ended chain or agent, which is the
    application's root if its parent never comes.
    """

    kind: Literal["part", "sent"]
    has_root: bool
    has_chain: bool
    spans: int


class Part(NamedTuple):
    """Some of the spans and log records of a trace."""

    spans: list[Span]
    logs: list[LogEvent]


class Sent(NamedTuple):
    """The mark of a trace that was sent: its messages are at offsets `first` to `last`, `digest` is of what was sent.

    A reader that begins between these offsets sees only a part of the trace. The mark tells it so.
    """

    first: int
    last: int
    digest: bytes


class EncodedParts(NamedTuple):
    """Messages, and the number of spans and log records that fit into none."""

    values: list[bytes]
    too_large: int


def encode_parts(spans: Sequence[Span], logs: Sequence[LogEvent], usual: int, largest: int) -> EncodedParts:
    """Encode spans and log records of one trace as few messages of at most `usual` bytes, one alone of `largest`."""
    value = encode_part(spans, logs)
    is_alone = len(spans) + len(logs) <= 1
    if value is not None and len(value) <= (largest if is_alone else usual):
        return EncodedParts([value], 0)
    if is_alone:
        return EncodedParts([], len(spans) + len(logs))
    if logs and spans:
        halves = [(spans, ()), ((), logs)]
    elif spans:
        middle = len(spans) // 2
        halves = [(spans[:middle], ()), (spans[middle:], ())]
    else:
        middle = len(logs) // 2
        halves = [((), logs[:middle]), ((), logs[middle:])]
    found = [encode_parts(*half, usual, largest) for half in halves]
    return EncodedParts([v for one in found for v in one.values], sum(one.too_large for one in found))


def encode_part(spans: Sequence[Span], logs: Sequence[LogEvent] = ()) -> bytes | None:
    """Encode one message; None if a value fits no message, such as an integer of more than 64 bits."""
    resources: dict[int, int] = {}
    scopes: dict[int, int] = {}
    shared: tuple[list[Any], list[Any]] = ([], [])
    flags, rows = 0, []
    for span in spans:
        if span.end_ns:
            if not span.parent_id:
                flags |= _HAS_ROOT
            elif not flags & _HAS_CHAIN and kind_of(span) in _CHAINS:
                flags |= _HAS_CHAIN
        resource = resources.setdefault(id(span.resource), len(resources))
        if resource == len(shared[0]):
            shared[0].append(span.resource)
        scope = scopes.setdefault(id(span.scope), len(scopes))
        if scope == len(shared[1]):
            shared[1].append((span.scope.name, span.scope.version))
        events = [(event.name, event.time_ns, event.attributes) for event in span.events]
        times = (span.start_ns, span.end_ns)
        status = (span.is_error, span.status_message)
        names = (span.trace_id, span.span_id, span.parent_id, span.name)
        rows.append((*names, *times, span.attributes, events, *status, resource, scope))
    events_of_logs = [(log.trace_id, log.span_id, log.name, log.time_ns, log.attributes, log.body) for log in logs]
    try:
        return _HEAD.pack(_PART, flags, len(spans)) + _encode((*shared, rows, events_of_logs))
    except (OverflowError, UnicodeEncodeError, RecursionError):
        return None


def encode_sent(sent: Sent) -> bytes:
    """Encode a mark."""
    return _HEAD.pack(_SENT, 0, 0) + _encode(sent)


def read_head(value: bytes | None) -> Head:
    """Read the head of a message; raise `BadRecord` for what the stage did not write."""
    if value is not None and len(value) >= _HEAD.size:
        kind, flags, spans = _HEAD.unpack_from(value)
        if kind == _PART:
            return Head("part", bool(flags & _HAS_ROOT), bool(flags & _HAS_CHAIN), spans)
        if kind == _SENT:
            return Head("sent", False, False, 0)
    raise BadRecord("not_spans", "only stage assemble writes to kafka.spans_topic; this message is from elsewhere")


def decode_part(value: bytes) -> Part:
    """Decode a part; raise `BadRecord` if it is damaged."""
    try:
        resources, scopes, rows, logs = _decode(memoryview(value)[_HEAD.size :])
        known = [Scope(*scope) for scope in scopes]
        spans = [_span(row, resources, known) for row in rows]
        return Part(spans, [LogEvent(*log) for log in logs])
    except (msgspec.DecodeError, ValueError, TypeError, IndexError) as error:
        raise _damaged(error) from None


def count_items(value: bytes) -> int:
    """The number of spans and log records in a part."""
    part = decode_part(value)
    return len(part.spans) + len(part.logs)


def _span(row: Sequence[Any], resources: Sequence[Any], scopes: Sequence[Scope]) -> Span:
    trace_id, span_id, parent_id, name, start_ns, end_ns, attributes, events, is_error, message, resource, scope = row
    return Span(
        trace_id,
        span_id,
        parent_id,
        name,
        start_ns,
        end_ns,
        attributes,
        [SpanEvent(*event) for event in events],
        is_error,
        message,
        resources[resource],
        scopes[scope],
    )


def decode_sent(value: bytes) -> Sent:
    """Decode a mark; raise `BadRecord` if it is damaged."""
    try:
        return msgspec.msgpack.decode(memoryview(value)[_HEAD.size :], type=Sent)
    except msgspec.MsgspecError as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> BadRecord:
    return BadRecord("damaged_spans", f"a message of kafka.spans_topic cannot be decoded: {type(error).__name__}")
