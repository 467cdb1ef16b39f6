"""Write OTLP as JSON: values, attributes, and batches of spans and of log records.

Ids are hex, 64-bit integers are texts, and names are in lower camel case, as the specification has them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]
Attributes: TypeAlias = Mapping[str, "str | bool | int | float | Sequence[str] | None"]
SPAN_INTERNAL = 1  # kind of span
SEVERITY_INFO = 9


def attributes(values: Attributes) -> list[Json]:
    """Encode attributes; those without a value are left out."""
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value is not None]


def span(
    trace_id: str,
    span_id: str,
    parent_id: str,
    name: str,
    start_ns: int,
    end_ns: int,
    values: Attributes,
    events: Sequence[Json] = (),
) -> Json:
    """Encode a span. `parent_id` "" is a root."""
    parent = {"parentSpanId": parent_id} if parent_id else {}
    return {
        "traceId": trace_id,
        "spanId": span_id,
        **parent,
        "name": name,
        "kind": SPAN_INTERNAL,
        "startTimeUnixNano": str(start_ns),
        "endTimeUnixNano": str(end_ns),
        "attributes": attributes(values),
        **({"events": [*events]} if events else {}),
    }


def span_batch(resource: Attributes, scope: str, version: str, spans: Sequence[Json]) -> bytes:
    """Encode a batch of spans of one resource and one scope."""
    scopes = [{"scope": {"name": scope, "version": version}, "spans": [*spans]}]
    return msgspec.json.encode({"resourceSpans": [{"resource": _resource(resource), "scopeSpans": scopes}]})


def log_record(name: str, time_ns: int, observed_ns: int, trace_id: str, span_id: str, values: Attributes) -> Json:
    """Encode an event, which is a log record with a name. `span_id` "": of the trace as a whole."""
    of_span = {"spanId": span_id} if span_id else {}
    return {
        "timeUnixNano": str(time_ns),
        "observedTimeUnixNano": str(observed_ns),
        "severityNumber": SEVERITY_INFO,
        "severityText": "INFO",
        "eventName": name,
        "traceId": trace_id,
        **of_span,
        "attributes": attributes(values),
    }


def log_batch(resource: Attributes, scope: str, version: str, records: Sequence[Json]) -> bytes:
    """Encode a batch of log records of one resource and one scope."""
    scopes = [{"scope": {"name": scope, "version": version}, "logRecords": [*records]}]
    return msgspec.json.encode({"resourceLogs": [{"resource": _resource(resource), "scopeLogs": scopes}]})


def empty_batch(signal: Literal["logs", "spans"]) -> bytes:
    """Encode a batch without any resource, which endpoints accept."""
    return msgspec.json.encode({"resourceLogs" if signal == "logs" else "resourceSpans": []})


def span_event(name: str, time_ns: int, values: Attributes) -> Json:
    """Encode an event of a span."""
    return {"timeUnixNano": str(time_ns), "name": name, "attributes": attributes(values)}


def _resource(values: Attributes) -> Json:
    return {"attributes": attributes(values)}


def _value(value: "str | bool | int | float | Sequence[str]") -> Json:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"arrayValue": {"values": [_value(one) for one in value]}}
