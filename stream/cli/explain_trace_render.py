"""Output of `ragtide explain-trace`: fields with their origins, what is not recorded, and what to do."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.decoding import Limits
from ragtide.stream.ingest.otel import (
    LOG_SPAN_MISSING,
    REASONS,
    Counts,
    LogBatch,
    LogEvent,
    MappedTrace,
    Missing,
    Origin,
    PromptRule,
    Span,
    SpanBatch,
    conventions_of,
    describe_counts,
    hint_of,
    map_spans,
)
from ragtide.stream.ingest.validation import validate
from ragtide.stream.terminal import say

_LONGEST_VALUE = 80


@dataclass(frozen=True, slots=True)
class Explained:
    """A trace that the spans become, and why ingest would refuse it: nothing, if it would not."""

    mapped: MappedTrace
    faults: tuple[BadRecord, ...]
    conventions: frozenset[str]

    def hint(self, path: str, missing: Missing) -> str:
        """What to do in the application."""
        return hint_of(path, missing.reason, self.conventions)


@dataclass(slots=True)
class Explanation:
    """The traces of some batches, with all counts."""

    batches: Sequence[SpanBatch]
    logs: Sequence[LogBatch]
    limits: Limits
    prompt_rule: PromptRule | None = None
    traces: list[Explained] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unmapped: Counter[str] = field(default_factory=Counter)
    without_application: list[str] = field(default_factory=list)
    of_judges: list[str] = field(default_factory=list)

    @property
    def trace_ids(self) -> list[str]:
        """The ids of the traces, in order."""
        return list(dict.fromkeys(span.trace_id for batch in self.batches for span in batch.spans))

    @property
    def refused(self) -> Counter[str]:
        """Spans and log records that cannot be read, by reason."""
        return sum((one.refused for one in self._counts), Counter())

    @property
    def notes(self) -> Counter[str]:
        """What is left out, or incomplete, without a fault of the file, by reason."""
        return sum((one.skipped for one in self._counts), +self.counts)

    @property
    def adjusted(self) -> Counter[str]:
        """Values that were changed or left out, by reason."""
        return sum((one.adjusted for one in self._counts), Counter())

    @property
    def has_faults(self) -> bool:
        """Whether something is refused or belongs to no application."""
        return bool(self.refused or self.without_application or any(one.faults for one in self.traces))

    @property
    def _counts(self) -> list[Counts]:
        return [batch.counts for batch in self.batches] + [batch.counts for batch in self.logs]

    def explain(self, only: str | None) -> None:
        """Map every trace, or one of them."""
        spans: dict[str, list[Span]] = {}
        events: dict[str, list[LogEvent]] = {}
        for batch in self.batches:
            for span in batch.spans:
                spans.setdefault(span.trace_id, []).append(span)
        for logged in self.logs:
            for event in logged.events:
                events.setdefault(event.trace_id, []).append(event)
        for trace_id, lonely in events.items():
            if trace_id not in spans:
                self.counts[LOG_SPAN_MISSING] += len(lonely)
        for trace_id in self.trace_ids if only is None else [only]:
            found = map_spans(spans[trace_id], events.get(trace_id, ()), self.prompt_rule)
            self.counts.update(found.counts)
            self.unmapped.update(found.unmapped)
            if not found.traces:
                (self.of_judges if found.counts["only_judges"] else self.without_application).append(trace_id)
            for mapped in found.traces:
                faults = validate(mapped.encode(), self.limits).faults
                self.traces.append(Explained(mapped, faults, conventions_of(mapped.request.spans)))


def as_object(explanation: Explanation) -> dict[str, Any]:
    """The explanation as JSON."""
    return {
        "spans": sum(len(batch.spans) for batch in explanation.batches),
        "refused": dict(explanation.refused),
        "adjusted": dict(explanation.adjusted),
        "counts": dict(explanation.notes),
        "unmapped": dict(explanation.unmapped),
        "without_application": explanation.without_application,
        "of_judges": explanation.of_judges,
        "traces": [_trace_object(one) for one in explanation.traces],
    }


def _trace_object(explained: Explained) -> dict[str, Any]:
    mapped = explained.mapped
    return {
        "trace": msgspec.json.decode(mapped.encode()),
        "fields": [
            {"field": path, "value": _value_of(mapped, path), **_origin_object(origin)}
            for path, origin in mapped.origins.items()
        ],
        "not_recorded": [
            {
                "field": path,
                "reason": missing.reason,
                "meaning": REASONS[missing.reason],
                "detail": missing.detail,
                "hint": explained.hint(path, missing),
            }
            for path, missing in mapped.missing.items()
        ],
        "faults": [{"key": fault.key, "reason": fault.reason, "detail": fault.detail} for fault in explained.faults],
    }


def _origin_object(origin: Origin) -> dict[str, str]:
    return {
        "span_id": origin.span_id,
        "span_name": origin.span_name,
        "attribute": origin.attribute,
        "convention": origin.convention,
        **({"setting": origin.setting} if origin.setting else {}),
    }


def _value_of(mapped: MappedTrace, path: str) -> Any:
    value: Any = msgspec.to_builtins(mapped.fields)
    for name in path.split("."):
        value = value[name]
    return value


def show(explanation: Explanation) -> None:
    """Print the explanation."""
    for explained in explanation.traces:
        _show_trace(explained)
    for trace_id in explanation.of_judges:
        say(
            f"trace {trace_id}: it has only spans of evaluators, and they are left out",
            mark="left out      ",
            colour="yellow",
        )
    for trace_id in explanation.without_application:
        say(
            f"trace {trace_id}: no span has a kind that is known (an LLM call, a retrieval, a chain, …)",
            mark="refused       ",
            colour="red",
        )
    for counts, what in (
        (explanation.refused, "left out, since they cannot be read"),
        (explanation.adjusted, "changed, or read without a part"),
        (explanation.notes, "noted"),
    ):
        if found := describe_counts(+counts):
            say(f"{what}: {found}", mark="counted       ", colour="yellow")
    if explanation.unmapped:
        say(
            f"attributes of known conventions that the mapping does not have: {describe_counts(explanation.unmapped)}",
            mark="unmapped      ",
            colour="yellow",
        )
    spans = sum(len(batch.spans) for batch in explanation.batches)
    refused = sum(bool(one.faults) for one in explanation.traces)
    accepted = len(explanation.traces) - refused
    say(f"{_of('span', spans)}: {_of('trace', accepted)} accepted, {refused:,} refused")


def _show_trace(explained: Explained) -> None:
    mapped = explained.mapped
    say(f"trace {_value_of(mapped, 'trace_id')}, {_of('span', len(mapped.request.spans))}")
    for path, origin in mapped.origins.items():
        if path != "trace_id":
            value = _shortened(_value_of(mapped, path))
            say(f"{path}: {value}{_described(origin)}", mark="recorded      ", colour="green")
    for path, missing in mapped.missing.items():
        hint = explained.hint(path, missing)
        say(
            f"{path}: {REASONS[missing.reason]}"
            + (f" ({missing.detail})" if missing.detail else "")
            + (f"; {hint}" if hint else ""),
            mark="not recorded  ",
            colour="yellow",
        )
    for fault in explained.faults:
        say(fault.detail or fault.reason, mark="refused       ", colour="red")


def _described(origin: Origin) -> str:
    """Where a field is from, as the end of a line."""
    if not origin.attribute:
        return f"  [span {origin.span_name}]" if origin.span_id else "  [all spans]"
    where = f"span {origin.span_name}" if origin.span_id else origin.span_name
    setting = f"; by {origin.setting}" if origin.setting else ""
    return f"  [{origin.attribute} of {where}; {origin.convention}{setting}]"


def _shortened(value: Any) -> str:
    if isinstance(value, list):
        return _of("chunk" if value and isinstance(value[0], Mapping) else "value", len(value))
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _of(what: str, count: int) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
