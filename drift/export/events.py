"""Scores as `gen_ai.evaluation.result` events of OpenTelemetry's GenAI conventions.

An event has no text of a trace. Its id and time depend on the score alone, so that receivers can drop repeats by id.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Any, NamedTuple

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.spec import Evaluator, Metric
from ragtide.sinks import otlp_json
from ragtide.sinks.otlp_http import Signal
from ragtide.sinks.otlp_json import Attributes, Json

EVENT_NAME = "gen_ai.evaluation.result"
SERVICE = "ragtide"  # stage `assemble` leaves its spans out, so that no score is evaluated
_TRACE_ID = re.compile(r"(?!0{32})([0-9a-f]{32})(?::((?!0{16})[0-9a-f]{16}))?")
_MOST_PLACES = 10
_NS = 1_000_000_000


class ScoredRow(NamedTuple):
    """A row of table `scores`, its place in the order of inserts, and the root span of its trace.

    `is_newest`: no greater version of it is stored, and no tombstone.
    """

    app: str
    environment: str
    evaluator: str
    time: datetime
    trace_id: str
    version: int
    metrics: Mapping[str, float]
    evidence: str
    findings: Sequence[str]
    fingerprint: str
    position: int
    is_newest: bool
    span_id: str


class Subject(NamedTuple):
    """The trace that was evaluated, and its root span; "" if that is not known."""

    trace_id: str
    span_id: str


def subject_of(row: ScoredRow) -> Subject | None:
    """Find the trace and span of a row; None if its trace has no id of OpenTelemetry."""
    found = _TRACE_ID.fullmatch(row.trace_id)
    return None if found is None else Subject(found[1], found[2] or row.span_id)


def wanted_metrics(evaluators: Mapping[str, Evaluator], patterns: Sequence[str]) -> dict[str, tuple[Metric, ...]]:
    """Choose the metrics to send, by evaluator: those that a pattern matches, or the primary ones.

    Raises `ConfigError` for a pattern that matches none.
    """
    named = {f"{id}.{one.key}": (id, one) for id, each in evaluators.items() for one in each.metrics if not one.per}
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in named):
            near = difflib.get_close_matches(pattern, named, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else "names are evaluator.metric, see docs/evaluators"
            raise ConfigError(f"otel.export.metrics: {pattern} matches no metric of a trace; {hint}")
    found: dict[str, tuple[Metric, ...]] = {}
    for name, (id, metric) in named.items():
        if any(fnmatchcase(name, one) for one in patterns) if patterns else metric.primary:
            found[id] = (*found.get(id, ()), metric)
    return found


class EventWriter:
    """Encodes batches of rows. `explanations` are never written for evaluators of privacy."""

    def __init__(
        self,
        evaluators: Mapping[str, Evaluator],
        patterns: Sequence[str],
        signal: Signal,
        version: str,
        *,
        explanations: bool,
    ) -> None:
        self._evaluators = evaluators
        self._signal = signal
        self._version = version
        self._explanations = explanations
        self.wanted = wanted_metrics(evaluators, patterns)

    def count(self, row: ScoredRow) -> int:
        """The number of events of a row."""
        return sum(metric.key in row.metrics for metric in self.wanted.get(row.evaluator, ()))

    def encode(self, rows: Sequence[ScoredRow]) -> bytes:
        """Encode rows as one batch of OTLP. Each must have a subject."""
        resource = {"service.name": SERVICE, "service.version": self._version}
        if self._signal == "logs":
            records = [record for row in rows for record in self._records(row)]
            return otlp_json.log_batch(resource, SERVICE, self._version, records)
        return otlp_json.span_batch(resource, SERVICE, self._version, [self._span(row) for row in rows])

    def _records(self, row: ScoredRow) -> Iterator[Json]:
        subject, at = _subject(row), _nanoseconds(row.time)
        for name, values in self._results(row):
            more = {"event.name": EVENT_NAME, "ragtide.event.id": event_id(row, name)}
            yield otlp_json.log_record(EVENT_NAME, at, at, subject.trace_id, subject.span_id, {**values, **more})

    def _span(self, row: ScoredRow) -> Json:
        """One span for all metrics of the row, as long as nothing."""
        subject, at = _subject(row), _nanoseconds(row.time)
        events = [otlp_json.span_event(EVENT_NAME, at, values) for _, values in self._results(row)]
        scores = {
            f"ragtide.score.{name}": values["gen_ai.evaluation.score.value"] for name, values in self._results(row)
        }
        values = {**_about(row), **scores, "openinference.span.kind": "EVALUATOR"}
        id = event_id(row, "")
        return otlp_json.span(
            subject.trace_id, id, subject.span_id, f"evaluation {row.evaluator}", at, at, values, events
        )

    def _results(self, row: ScoredRow) -> Iterator[tuple[str, Attributes]]:
        """Name and attributes of each score of the row."""
        explanation = self._explanation(row)
        for metric in self.wanted.get(row.evaluator, ()):
            value = row.metrics.get(metric.key)
            if value is None:
                continue
            name = f"{row.evaluator}.{metric.key}"
            yield (
                name,
                {
                    "gen_ai.evaluation.name": name,
                    "gen_ai.evaluation.score.value": float(value),
                    "gen_ai.evaluation.score.label": _label(metric, value),
                    "gen_ai.evaluation.explanation": explanation,
                    **_about(row),
                },
            )

    def _explanation(self, row: ScoredRow) -> str | None:
        if not self._explanations or self._evaluators[row.evaluator].domain == "privacy":
            return None
        places = [_place(one) for one in json.loads(row.evidence)]
        listed = places[:_MOST_PLACES] + [f"{len(places) - _MOST_PLACES} more"] * (len(places) > _MOST_PLACES)
        return "; ".join([*row.findings, *listed]) or None


def event_id(row: ScoredRow, name: str) -> str:
    """Hash what identifies a score of one version of a trace: 16 hex digits, which are the id of a span too."""
    named = (row.app, row.environment, row.trace_id, row.evaluator, name, str(row.version), row.fingerprint)
    found = blake2b("\0".join(named).encode(errors="replace"), digest_size=8).hexdigest()
    return found if int(found, 16) else "1".zfill(16)


def _about(row: ScoredRow) -> dict[str, str | None]:
    return {
        "ragtide.app": row.app,
        "ragtide.environment": row.environment or None,
        "ragtide.evaluator.fingerprint": row.fingerprint,
        "ragtide.event.version": f"{row.version:032x}",  # more than 64 bits; texts of one length sort as numbers
    }


def _subject(row: ScoredRow) -> Subject:
    found = subject_of(row)
    assert found is not None, "rows without a subject are left out before"
    return found


def _label(metric: Metric, value: float) -> str | None:
    """Say whether the metric's own threshold is kept; None without one."""
    if metric.threshold is None:
        return None
    good = value >= metric.threshold if metric.better == "higher" else value <= metric.threshold
    return "pass" if good else "fail"


def _place(evidence: Mapping[str, Any]) -> str:
    """Kind, field, position and score of a place: no text, and no id of a chunk."""
    score = evidence.get("score")
    kind = f"{evidence['kind']} in " if evidence.get("kind") else ""
    where = f"{kind}{evidence['field']} {evidence['start']}-{evidence['end']}"
    return where if score is None else f"{where}: {score:.3g}"


def _nanoseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000) * (_NS // 1000)
