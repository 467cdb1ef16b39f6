"""Decode OTLP in protobuf: batches of spans and of log records.

The messages are declared here, with the fields that ragtide reads, for the runtime of `protobuf` alone. Spans are read
one by one, and a text that is not UTF-8 is read with U+FFFD, so that one bad span costs that span. The generated
classes refuse the whole batch.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from ragtide.evaluators.errors import BadRecord, ConfigError
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

_ONE, _MANY = 1, 3  # labels of FieldDescriptorProto
_DOUBLE, _INT64, _INT32, _FIXED64, _BOOL, _STRING, _MESSAGE, _BYTES = 1, 3, 5, 6, 8, 9, 11, 12
_TYPES: Mapping[str, int] = {
    **{"double": _DOUBLE, "int64": _INT64, "int32": _INT32, "fixed64": _FIXED64, "bool": _BOOL},
    **{"text": _STRING, "bytes": _BYTES},
}
# message: (field, number, type); a type in brackets is repeated. As in opentelemetry-proto 1.x.
_MESSAGES: Mapping[str, tuple[tuple[str, int, str], ...]] = {
    "AnyValue": (
        ("string_value", 1, "text"),
        ("bool_value", 2, "bool"),
        ("int_value", 3, "int64"),
        ("double_value", 4, "double"),
        ("array_value", 5, "ArrayValue"),
        ("kvlist_value", 6, "KeyValueList"),
        ("bytes_value", 7, "bytes"),
    ),
    "ArrayValue": (("values", 1, "[AnyValue]"),),
    "KeyValueList": (("values", 1, "[KeyValue]"),),
    "KeyValue": (("key", 1, "text"), ("value", 2, "AnyValue")),
    "Resource": (("attributes", 1, "[KeyValue]"),),
    "Scope": (("name", 1, "text"), ("version", 2, "text")),
    "Event": (("time", 1, "fixed64"), ("name", 2, "text"), ("attributes", 3, "[KeyValue]")),
    "Status": (("message", 2, "text"), ("code", 3, "int32")),
    "Span": (
        ("trace_id", 1, "bytes"),
        ("span_id", 2, "bytes"),
        ("parent_span_id", 4, "bytes"),
        ("name", 5, "text"),
        ("start", 7, "fixed64"),
        ("end", 8, "fixed64"),
        ("attributes", 9, "[KeyValue]"),
        ("events", 11, "[Event]"),
        ("status", 15, "Status"),
    ),
    "LogRecord": (
        ("time", 1, "fixed64"),
        ("body", 5, "AnyValue"),
        ("attributes", 6, "[KeyValue]"),
        ("trace_id", 9, "bytes"),
        ("span_id", 10, "bytes"),
        ("event_name", 12, "text"),
    ),
    # Spans and log records stay bytes here.
    "ScopeItems": (("scope", 1, "bytes"), ("items", 2, "[bytes]")),
    "ResourceItems": (("resource", 1, "bytes"), ("scopes", 2, "[ScopeItems]")),
    "Batch": (("resources", 1, "[ResourceItems]"),),
}

_ERROR = 2  # a code of Status
_NO_RUNTIME = (
    "reading OpenTelemetry in protobuf needs the extra `otel`: install ragtide[otel], "
    "or set `encoding: otlp_json` in the Collector's Kafka exporter"
)
_NOT_OTLP = "the bytes are no OTLP batch in protobuf, or a part of one; set `encoding: otlp_proto` in the Collector"


class _Parsers(NamedTuple):
    """From bytes to a message, by name of the message; `failure` is what they raise."""

    strict: Mapping[str, Callable[[bytes], Any]]
    lossy: Mapping[str, Callable[[bytes], Any]]  # texts are bytes
    failure: type[Exception]


def decode_spans(value: bytes) -> SpanBatch:
    """Decode an ExportTraceServiceRequest; raises `BadRecord` for what is no batch, `ConfigError` without protobuf."""
    parsers, counts = _parsers(), Counts()
    spans: list[Span] = []
    for resource, scope, items in _items(value, parsers, counts):
        for item in items:
            try:
                spans.append(_span(_parse("Span", item, parsers, counts), resource, scope, counts))
            except BadItem as bad:
                counts.refused[bad.reason] += 1
    return SpanBatch(spans, counts)


def decode_logs(value: bytes) -> LogBatch:
    """Decode an ExportLogsServiceRequest; raises `BadRecord` for what is no batch, `ConfigError` without protobuf."""
    parsers, counts = _parsers(), Counts()
    events: list[LogEvent] = []
    for _, _, items in _items(value, parsers, counts):
        for item in items:
            try:
                event = _log_event(_parse("LogRecord", item, parsers, counts))
            except BadItem as bad:
                counts.refused[bad.reason] += 1
                continue
            if event is None:
                counts.skipped["no_span"] += 1
            else:
                events.append(event)
    return LogBatch(events, counts)


def _items(
    value: bytes, parsers: _Parsers, counts: Counts
) -> Iterator[tuple[dict[str, Value], Scope, Iterable[bytes]]]:
    try:
        batch = parsers.strict["Batch"](value)
    except parsers.failure:
        raise BadRecord("not_otlp", _NOT_OTLP) from None
    if value and not batch.resources:
        raise BadRecord("not_otlp", _NOT_OTLP)
    for part in batch.resources:
        try:
            resource = _attributes(_parse("Resource", part.resource, parsers, counts).attributes)
        except BadItem:
            resource = {}
            counts.adjusted["bad_resource"] += 1
        for scoped in part.scopes:
            try:
                library = _parse("Scope", scoped.scope, parsers, counts)
                scope = Scope(_text(library.name), _text(library.version))
            except BadItem:
                scope = Scope()
                counts.adjusted["bad_scope"] += 1
            yield resource, scope, scoped.items


def _parse(name: str, item: bytes, parsers: _Parsers, counts: Counts) -> Any:
    try:
        return parsers.strict[name](item)
    except parsers.failure:
        try:
            parsed = parsers.lossy[name](item)
        except parsers.failure:
            raise BadItem("malformed") from None
        counts.adjusted["not_utf8"] += 1
        return parsed


def _span(message: Any, resource: dict[str, Value], scope: Scope, counts: Counts) -> Span:
    trace_id, span_id, parent_id = message.trace_id, message.span_id, message.parent_span_id
    if len(trace_id) != TRACE_ID_BYTES or not any(trace_id):
        raise BadItem("bad_trace_id")
    if len(span_id) != SPAN_ID_BYTES or not any(span_id):
        raise BadItem("bad_span_id")
    if parent_id and (len(parent_id) != SPAN_ID_BYTES or not any(parent_id)):
        counts.adjusted["bad_parent_id"] += any(parent_id)  # zeros are a usual form of none
        parent_id = b""
    events = [SpanEvent(_text(one.name), one.time, _attributes(one.attributes)) for one in message.events]
    status = message.status
    return Span(
        trace_id.hex(),
        span_id.hex(),
        parent_id.hex(),
        _text(message.name),
        message.start,
        message.end,
        _attributes(message.attributes),
        events,
        status.code == _ERROR,
        _text(status.message),
        resource,
        scope,
    )


def _log_event(message: Any) -> LogEvent | None:
    """The log record; None for one of no span."""
    if len(message.trace_id) != TRACE_ID_BYTES or len(message.span_id) != SPAN_ID_BYTES:
        return None
    attributes = _attributes(message.attributes)
    name = _text(message.event_name) or str(attributes.get("event.name", ""))
    return LogEvent(message.trace_id.hex(), message.span_id.hex(), name, message.time, attributes, _value(message.body))


def _attributes(pairs: Any) -> dict[str, Value]:
    attributes: dict[str, Value] = {}
    for pair in pairs:
        value = pair.value
        text = value.string_value  # "" for every other type
        key = pair.key
        if type(key) is str and text:
            attributes[key] = text
        else:
            attributes[_text(key)] = _value(value)
    return attributes


def _value(value: Any) -> Value:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    found = getattr(value, kind)
    if kind == "string_value":
        return _text(found)
    if kind == "array_value":
        return [_value(one) for one in found.values]
    if kind == "kvlist_value":
        return _attributes(found.values)
    plain: Value = found
    return plain


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


@cache
def _parsers() -> _Parsers:
    try:
        descriptors, pools, factory, messages = (
            importlib.import_module(f"google.protobuf.{name}")
            for name in ("descriptor_pb2", "descriptor_pool", "message_factory", "message")
        )
    except ImportError:
        raise ConfigError(_NO_RUNTIME) from None
    parsers = []
    for text in (_STRING, _BYTES):
        file = descriptors.FileDescriptorProto(name="otlp.proto", package="otlp", syntax="proto3")
        for name, fields in _MESSAGES.items():
            message = file.message_type.add(name=name)
            if name == "AnyValue":
                message.oneof_decl.add(name="value")
            for field, number, of in fields:
                inner = of.strip("[]")
                added = message.field.add(name=field, number=number, label=_MANY if of[0] == "[" else _ONE)
                added.type = text if inner == "text" else _TYPES.get(inner, _MESSAGE)
                if added.type == _MESSAGE:
                    added.type_name = f".otlp.{inner}"
                if name == "AnyValue":
                    added.oneof_index = 0
        pool = pools.DescriptorPool()
        pool.Add(file)
        parsers.append(
            {name: factory.GetMessageClass(pool.FindMessageTypeByName(f"otlp.{name}")).FromString for name in _MESSAGES}
        )
    return _Parsers(parsers[0], parsers[1], messages.DecodeError)
