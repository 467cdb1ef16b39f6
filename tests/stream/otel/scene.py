"""Spans made by hand, and the recorded ones."""

from pathlib import Path
from typing import Any

import msgspec

from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.ingest.decoding import Limits
from ragtide.stream.ingest.otel import LogEvent, MappedTrace, Span, decode_logs, decode_spans, map_spans
from ragtide.stream.ingest.otel.spans import Scope, SpanEvent
from ragtide.stream.ingest.validation import validate
from ragtide.stream.settings.sections import IngestSettings

RECORDED = Path(__file__).parent / "recorded"
NAMES = sorted(path.stem for path in RECORDED.glob("*.binpb") if ".logs" not in path.name)
QUESTION = "When does the museum open?"
ANSWER = "It opens at nine."
HOURS = "The museum opens at nine."
PRICES = "Tickets cost eight euros."
TRACE = "0af7651916cd43dd8448eb211c80319c"
LIMITS = Limits.of(IngestSettings(), RetentionSettings(), timely=False)
_START_NS = 1_790_000_000_000_000_000
_SECOND = 1_000_000_000
RESOURCE: dict[str, Any] = {"service.name": "museum"}


def span(
    number: int,
    parent: int = 0,
    at: float = 0,
    until: float = 1,
    *,
    error: bool = False,
    message: str = "",
    events: tuple[SpanEvent, ...] = (),
    resource: dict[str, Any] | None = None,
    scope: str = "",
    **attributes: Any,
) -> Span:
    """A span from `at` to `until` seconds; in names of attributes `__` stands for a dot."""
    return Span(
        TRACE,
        f"{number:016x}",
        f"{parent:016x}" if parent else "",
        f"span {number}",
        _START_NS + round(at * _SECOND),
        _START_NS + round(until * _SECOND),
        {name.replace("__", "."): value for name, value in attributes.items()},
        events,
        error,
        message,
        RESOURCE if resource is None else resource,
        Scope(scope, "1"),
    )


def oi(kind: str, **attributes: Any) -> dict[str, Any]:
    """Attributes of a span of OpenInference."""
    return {"openinference__span__kind": kind, **attributes}


def map_one(*spans: Span, logs: tuple[LogEvent, ...] = ()) -> MappedTrace:
    """The only trace that the spans become, which ingest accepts."""
    [mapped] = map_spans(spans, logs).traces
    assert validate(mapped.encode(), LIMITS).faults == ()
    return mapped


def fields_of(mapped: MappedTrace) -> dict[str, Any]:
    """The canonical trace as JSON has it."""
    decoded: dict[str, Any] = msgspec.json.decode(mapped.encode())
    return decoded


def recorded(name: str, suffix: str = ".binpb") -> tuple[list[Span], list[LogEvent]]:
    """The recorded spans and log records of a case."""
    logs = RECORDED / f"{name}.logs{suffix}"
    return (
        decode_spans((RECORDED / f"{name}{suffix}").read_bytes()).spans,
        decode_logs(logs.read_bytes()).events if logs.exists() else [],
    )
