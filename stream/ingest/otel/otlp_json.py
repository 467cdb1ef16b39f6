"""Decode OTLP in JSON: batches of spans and of log records. Each is read on its own: a bad one costs that one.

Ids are hex, as the specification demands; base64, as the plain mapping of protobuf to JSON writes them, is read too.
64-bit numbers are texts or numbers. Unknown fields are ignored.
"""

import binascii
import json
import math
from typing import TypeAlias

import msgspec

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.canonical_json import repair_json
from ragtide.stream.ingest.otel.spans import (
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    BadItem,
    Counts,
    LogBatch,
    LogEvent,
    Scope,
    Span,
    SpanBatch,
    SpanEvent,
    Value,
)

_Number: TypeAlias = int | float | str
_ERRORS = ("STATUS_CODE_ERROR", "2", 2)
_ABSENT = msgspec.Raw(b"null")
_MOST_DEPTH = 100  # of values, as protobuf has it


class _Record(msgspec.Struct, rename="camel", gc=False):
    """Base of the records: names in lower camel case."""


class _List(_Record):
    values: list["_Any"] = []


class _Map(_Record):
    values: list["_Pair"] = []


class _Any(_Record):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: _Number | None = None
    double_value: _Number | None = None
    array_value: _List | None = None
    kvlist_value: _Map | None = None
    bytes_value: str | None = None


class _Pair(_Record):
    key: str
    value: _Any | None = None


class _Event(_Record):
    time_unix_nano: _Number = 0
    name: str = ""
    attributes: list[msgspec.Raw] = []


class _Status(_Record):
    code: int | str = 0
    message: str = ""


class _Span(_Record):
    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    name: str | None = None
    start_time_unix_nano: _Number | None = None
    end_time_unix_nano: _Number | None = None
    attributes: list[msgspec.Raw] | None = None
    events: list[_Event] | None = None
    status: _Status | None = None


class _LogRecord(_Record):
    trace_id: str = ""
    span_id: str = ""
    event_name: str | None = None
    time_unix_nano: _Number | None = None
    attributes: list[msgspec.Raw] | None = None
    body: msgspec.Raw = _ABSENT


class _Attributes(_Record):
    attributes: list[msgspec.Raw] | None = None


class _Scope(_Record):
    name: str | None = None
    version: str | None = None


class _ScopeItems(_Record):
    scope: msgspec.Raw = _ABSENT
    spans: list[msgspec.Raw] | None = None
    log_records: list[msgspec.Raw] | None = None


class _ResourceItems(_Record):
    resource: msgspec.Raw = _ABSENT
    scope_spans: list[_ScopeItems] | None = None
    scope_logs: list[_ScopeItems] | None = None


class _Batch(_Record):
    resource_spans: list[_ResourceItems] | None = None
    resource_logs: list[_ResourceItems] | None = None


_BATCH = msgspec.json.Decoder(_Batch)
_SPAN = msgspec.json.Decoder(_Span)
_LOG_RECORD = msgspec.json.Decoder(_LogRecord)
_PAIR = msgspec.json.Decoder(_Pair)
_RESOURCE = msgspec.json.Decoder(_Attributes)
_SCOPE = msgspec.json.Decoder(_Scope)
_ANY = msgspec.json.Decoder(_Any)
_FAILURES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_spans(value: bytes) -> SpanBatch:
    """Decode an ExportTraceServiceRequest; raises `BadRecord` for what is no batch."""
    batch, counts = _batch(value, "resourceSpans"), Counts()
    spans: list[Span] = []
    for part in batch.resource_spans or ():
        resource = _resource(part.resource, counts)
        for scoped in part.scope_spans or ():
            scope = _scope(scoped.scope, counts)
            for item in scoped.spans or ():
                try:
                    spans.append(_span(item, resource, scope, counts))
                except BadItem as bad:
                    counts.refused[bad.reason] += 1
    return SpanBatch(spans, counts)


def decode_logs(value: bytes) -> LogBatch:
    """Decode an ExportLogsServiceRequest; raises `BadRecord` for what is no batch."""
    batch, counts = _batch(value, "resourceLogs"), Counts()
    events: list[LogEvent] = []
    items = (
        item
        for part in batch.resource_logs or ()
        for scoped in part.scope_logs or ()
        for item in scoped.log_records or ()
    )
    for item in items:
        try:
            event = _log_event(item, counts)
        except BadItem as bad:
            counts.refused[bad.reason] += 1
            continue
        if event is None:
            counts.skipped["no_span"] += 1
        else:
            events.append(event)
    return LogBatch(events, counts)


def _batch(value: bytes, wanted: str) -> _Batch:
    try:
        batch = _BATCH.decode(value)
    except _FAILURES:
        batch = _BATCH.decode(_repair(value, wanted))
    if batch.resource_spans is None and batch.resource_logs is None and value.strip() != b"{}":
        raise BadRecord("not_otlp", f"the JSON object has no {wanted}; set `encoding: otlp_json` in the Collector")
    return batch


def _repair(value: bytes, wanted: str) -> bytes:
    """Replace NaN, Infinity and lone surrogates, which JSON has not; raise `BadRecord` for everything else."""
    try:
        decoded = json.loads(value)
        repaired = msgspec.json.encode(_clean(decoded))
        _BATCH.decode(repaired)
    except msgspec.ValidationError:
        if isinstance(decoded, list):
            detail = "found a JSON array, as zipkin_json is; set `encoding: otlp_json` in the Collector"
        else:
            detail = f"the JSON is no OTLP batch: {wanted}[].scope…[] wanted"
        raise BadRecord("not_otlp", detail) from None
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be read") from None
    except ValueError:
        raise BadRecord("not_json", "malformed JSON, or a part of a batch") from None
    return repaired


def _clean(decoded: object) -> object:
    if isinstance(decoded, str):
        return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(decoded, list):
        return [_clean(one) for one in decoded]
    if isinstance(decoded, dict):
        return {str(_clean(key)): _clean(one) for key, one in decoded.items()}
    return str(decoded) if isinstance(decoded, float) and not math.isfinite(decoded) else decoded


def _resource(raw: msgspec.Raw, counts: Counts) -> dict[str, Value]:
    if raw == _ABSENT:
        return {}
    try:
        return _attributes(_RESOURCE.decode(raw).attributes, counts)
    except _FAILURES:
        counts.adjusted["bad_resource"] += 1
        return {}


def _scope(raw: msgspec.Raw, counts: Counts) -> Scope:
    if raw == _ABSENT:
        return Scope()
    try:
        scope = _SCOPE.decode(raw)
    except _FAILURES:
        counts.adjusted["bad_scope"] += 1
        return Scope()
    return Scope(scope.name or "", scope.version or "")


def _span(raw: msgspec.Raw, resource: dict[str, Value], scope: Scope, counts: Counts) -> Span:
    try:
        item = _SPAN.decode(raw)
    except _FAILURES:
        raise BadItem("malformed") from None
    try:
        parent = _id(item.parent_span_id or "", SPAN_ID_BYTES, "bad_parent_id", counts) if item.parent_span_id else ""
    except BadItem as bad:
        parent = ""
        counts.adjusted[bad.reason] += item.parent_span_id != "0" * 16
    status = item.status or _Status()
    return Span(
        _id(item.trace_id, TRACE_ID_BYTES, "bad_trace_id", counts),
        _id(item.span_id, SPAN_ID_BYTES, "bad_span_id", counts),
        parent,
        item.name or "",
        _nanoseconds(item.start_time_unix_nano, counts),
        _nanoseconds(item.end_time_unix_nano, counts),
        _attributes(item.attributes, counts),
        [
            SpanEvent(one.name, _nanoseconds(one.time_unix_nano, counts), _attributes(one.attributes, counts))
            for one in item.events or ()
        ],
        status.code in _ERRORS,
        status.message,
        resource,
        scope,
    )


def _log_event(raw: msgspec.Raw, counts: Counts) -> LogEvent | None:
    """The log record; None for one of no span."""
    try:
        item = _LOG_RECORD.decode(raw)
        body = _value(_ANY.decode(item.body)) if item.body != _ABSENT else None
    except (*_FAILURES, ValueError):
        raise BadItem("malformed") from None
    if not item.trace_id or not item.span_id:
        return None
    attributes = _attributes(item.attributes, counts)
    return LogEvent(
        _id(item.trace_id, TRACE_ID_BYTES, "bad_trace_id", counts),
        _id(item.span_id, SPAN_ID_BYTES, "bad_span_id", counts),
        item.event_name or str(attributes.get("event.name", "")),
        _nanoseconds(item.time_unix_nano, counts),
        attributes,
        body,
    )


def _id(text: str, size: int, reason: str, counts: Counts) -> str:
    """The id as lower-case hex. Of zeros only, or of another size, it is `reason`."""
    try:
        if len(text) == 2 * size:
            found = bytes.fromhex(text)
        else:
            found = binascii.a2b_base64(text, strict_mode=True)
            counts.adjusted["base64_id"] += 1
    except ValueError:
        raise BadItem(reason) from None
    if len(found) != size or not any(found):
        raise BadItem(reason)
    return found.hex()


def _nanoseconds(value: _Number | None, counts: Counts) -> int:
    try:
        found = int(value or 0)
    except (ValueError, OverflowError):
        found = -1
    if 0 <= found < 1 << 64:
        return found
    counts.adjusted["bad_time"] += 1
    return 0


def _attributes(items: list[msgspec.Raw] | None, counts: Counts) -> dict[str, Value]:
    attributes: dict[str, Value] = {}
    for item in items or ():
        try:
            pair = _pair(item)
            value = pair.value
            text = value.string_value if value is not None else None
            attributes[pair.key] = text if text is not None or value is None else _value(value)
        except (*_FAILURES, ValueError):
            counts.adjusted["bad_attribute"] += 1
    return attributes


def _pair(item: msgspec.Raw) -> _Pair:
    try:
        return _PAIR.decode(item)
    except _FAILURES:
        if rb"\u" not in bytes(item):
            raise
        try:  # a half of a surrogate pair
            return msgspec.convert(repair_json(bytes(item)), _Pair)
        except BadRecord:
            raise ValueError from None


def _value(value: _Any, depth: int = 0) -> Value:
    """The value; raises ValueError where its number or bytes are none."""
    if depth > _MOST_DEPTH:
        raise ValueError
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        number = int(value.int_value)
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError
        return number
    if value.double_value is not None:
        return float(value.double_value)
    if value.bool_value is not None:
        return value.bool_value
    if value.array_value is not None:
        return [_value(one, depth + 1) for one in value.array_value.values]
    if value.kvlist_value is not None:
        return {
            one.key: None if one.value is None else _value(one.value, depth + 1) for one in value.kvlist_value.values
        }
    return None if value.bytes_value is None else binascii.a2b_base64(value.bytes_value, strict_mode=True)
