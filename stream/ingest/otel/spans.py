"""Spans and log records of OpenTelemetry as plain values, whichever encoding they came in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

Value: TypeAlias = "str | int | float | bool | bytes | list[Value] | dict[str, Value] | None"
Attributes: TypeAlias = Mapping[str, Value]

TRACE_ID_BYTES = 16
SPAN_ID_BYTES = 8


class SpanEvent(msgspec.Struct, frozen=True, gc=False):
    """An event of a span. Times are nanoseconds since 1970; 0: not recorded."""

    name: str
    time_ns: int = 0
    attributes: Attributes = {}


class Scope(msgspec.Struct, frozen=True):
    """The instrumentation library that made a span."""

    name: str = ""
    version: str = ""


class Span(msgspec.Struct, frozen=True, gc=False):
    """One span. Ids are lower-case hex; `parent_id` "" means none. Times are nanoseconds since 1970; 0: not recorded.

    Spans of a batch share their `resource`, so that it is not copied.
    """

    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str = ""
    start_ns: int = 0
    end_ns: int = 0
    attributes: Attributes = {}
    events: Sequence[SpanEvent] = ()
    is_error: bool = False
    status_message: str = ""
    resource: Attributes = {}
    scope: Scope = Scope()


class LogEvent(msgspec.Struct, frozen=True):
    """A log record that belongs to a span."""

    trace_id: str
    span_id: str
    name: str
    time_ns: int = 0
    attributes: Attributes = {}
    body: Value = None


@dataclass(slots=True)
class Counts:
    """Counts by reason.

    `refused`: spans and log records that cannot be read. `skipped`: log records that are good and of no span.
    `adjusted`: values that were changed or left out.
    """

    refused: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    adjusted: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """The spans of one message."""

    spans: list[Span]
    counts: Counts


@dataclass(frozen=True, slots=True)
class LogBatch:
    """The log records of one message that belong to spans."""

    events: list[LogEvent]
    counts: Counts


class BadItem(ValueError):
    """One span or log record cannot be used; `reason` is a slug."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
