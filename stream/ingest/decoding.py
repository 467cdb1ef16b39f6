"""Decode a record into a trace or a `BadRecord` with reason and position that never quotes texts of users."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.structs import force_setattr

from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.trace import Source, Trace
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.canonical_json import decode_canonical
from ragtide.stream.ingest.names import refuse_identity
from ragtide.stream.ingest.records import Record
from ragtide.stream.ingest.timeliness import Timeliness
from ragtide.stream.settings.sections import IngestSettings, Price

SCHEMA_VERSION = 1  # the form of `rag.traces` messages that is written; readers take the one before as well
Decoder = Callable[[bytes, Adjustments], Trace]  # counts what it changes
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(2106, 1, 1, tzinfo=UTC)  # windows start at 32-bit seconds
_NESTING = (dict, list)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of accepted traces. `timeliness` None: times are not limited (replays)."""

    max_bytes: int
    max_depth: int
    max_name: int
    timeliness: Timeliness | None
    default_task: str
    tasks: dict[str, str]
    prices: dict[str, Price]

    @classmethod
    def of(cls, ingest: IngestSettings, retention: RetentionSettings, *, timely: bool) -> "Limits":
        """The limits of live traffic (`timely`) or of a replay."""
        return cls(
            max_bytes=ingest.max_bytes,
            max_depth=ingest.max_depth,
            max_name=ingest.max_name_characters,
            timeliness=Timeliness.of(ingest, retention) if timely else None,
            default_task=ingest.default_task,
            tasks=dict(ingest.tasks),
            prices=dict(ingest.prices),
        )


class DecodedTrace(NamedTuple):
    """A trace and its event time in seconds since 1970."""

    trace: Trace
    seconds: float


def decode_trace(
    record: Record,
    limits: Limits,
    decoder: Decoder = decode_canonical,
    adjustments: Adjustments | None = None,
) -> DecodedTrace:
    """Decode the record's trace, with time in UTC to the ms, task, cost and source filled in; raise `BadRecord`.

    The event time comes as a number too: working it out once saves a tenth of the decoding. What decoding changes is
    counted in `adjustments`.
    """
    value = record.value
    if value is None:
        raise BadRecord("no_value", "the message has no value; a trace is a JSON object")
    if len(value) > limits.max_bytes:
        raise BadRecord("too_big", f"{len(value)} bytes; ingest.max_bytes is {limits.max_bytes}")
    try:
        trace = decoder(value, Adjustments() if adjustments is None else adjustments)
    except RecursionError:
        raise _too_deep(limits) from None
    _check(trace, limits)
    force_setattr(trace, "time", _utc(trace.time))
    seconds = trace.time.timestamp()
    if limits.timeliness is not None:
        limits.timeliness.check_event(seconds, record)
    if trace.task is None:
        force_setattr(trace, "task", limits.tasks.get(trace.app, limits.default_task))
    if limits.prices and trace.cost_usd is None:
        force_setattr(trace, "cost_usd", _cost_usd(trace, limits.prices))
    force_setattr(trace, "source", Source(record.topic, record.partition, record.offset))
    return DecodedTrace(trace, seconds)


def _cost_usd(trace: Trace, prices: Mapping[str, Price]) -> float | None:
    """Cost by the price table, if the model has a price and tokens were counted. Input includes cached tokens."""
    model, tokens = trace.model, trace.tokens
    price = prices.get((model.served or model.requested or "") if model is not None else "")
    if price is None or tokens is None or tokens.input is None or tokens.output is None:
        return None
    cached = min(tokens.cached or 0, tokens.input) if price.cached_usd is not None else 0
    read_usd = (tokens.input - cached) * price.input_usd + cached * (price.cached_usd or 0.0)
    return (read_usd + tokens.output * price.output_usd) / 1_000_000


def _check(trace: Trace, limits: Limits) -> None:
    if not trace.trace_id:
        raise BadRecord("missing_trace_id", "trace_id is empty", "trace_id")
    if not trace.app:
        raise BadRecord("missing_app", "app is empty", "app")
    identity = trace.app + trace.environment + (trace.task or "")
    if len(identity) > limits.max_name or not identity.isprintable():  # hardly any record needs a closer look
        for field in ("app", "environment", "task"):
            refuse_identity(field, getattr(trace, field) or "", limits.max_name)
    if trace.question is None and trace.answer is None:
        raise BadRecord("missing_question_and_answer", "one of question and answer must be recorded", "question")
    if trace.schema_version != SCHEMA_VERSION:
        reason = "newer_schema" if trace.schema_version > SCHEMA_VERSION else "unknown_schema"
        raise BadRecord(
            reason,
            f"schema_version is {str(trace.schema_version)[:20]}; this version reads {SCHEMA_VERSION}, upgrade ragtide",
            "schema_version",
        )
    for chunk in trace.contexts or ():
        for value in chunk.metadata.values():
            if type(value) in _NESTING and _is_deeper(value, limits.max_depth - 4):
                raise _too_deep(limits)
    if trace.attributes or trace.constraints or trace.boxes:
        boxes = trace.boxes and (trace.boxes.expected, trace.boxes.predicted)
        if any(_is_deeper(free, limits.max_depth - 1) for free in (trace.attributes, trace.constraints, boxes) if free):
            raise _too_deep(limits)


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether arrays and objects are nested in more than `levels` levels."""
    layer = [value]
    while layer:
        if levels == 0:
            return True
        levels -= 1
        items = (item for node in layer for item in (node.values() if isinstance(node, dict) else node))
        layer = [item for item in items if isinstance(item, (dict, list, tuple))]
    return False


def _too_deep(limits: Limits) -> BadRecord:
    return BadRecord("too_deep", f"arrays and objects nested in more than ingest.max_depth = {limits.max_depth} levels")


def _utc(time: datetime) -> datetime:
    if time.tzinfo is not UTC:
        if time.tzinfo is None:
            raise BadRecord(
                "time_without_offset", "time: RFC 3339 demands an offset, e.g. 2026-03-01T12:00:00Z", "time"
            )
        try:
            time = time.astimezone(UTC)
        except OverflowError:
            raise BadRecord("time_out_of_range", "time: before 1970 or after 2105", "time") from None
    if not _EARLIEST <= time < _LATEST:
        raise BadRecord("time_out_of_range", "time: before 1970 or after 2105", "time")
    beyond = time.microsecond % 1000  # tables keep ms, and a row's key must not depend on how a client rounds
    return time.replace(microsecond=time.microsecond - beyond) if beyond else time
