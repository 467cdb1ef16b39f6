"""Collect the score rows of the pipeline as columns: a third of the memory that rows take."""

import math
import pickle
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from importlib import import_module
from typing import Any, NamedTuple

from ragtide.evaluators.outcome import Finding
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.spec import Evaluator, Metric
from ragtide.sinks.rows import Block, ScoreRow
from ragtide.sinks.version import without_evaluator
from ragtide.stream.ingest.rows import ScoreKey

ABSENT = math.nan  # in a column of values; scores are finite
_NO_LABELS: Mapping[str, str] = {}
_NO_NUMBERS: Mapping[str, float] = {}


class EvaluatedTrace(NamedTuple):
    """A trace that was evaluated. `record` is its number among the records, from 1; of a file its line."""

    record: int
    trace_id: str
    app: str
    environment: str
    time: datetime
    task: str
    model: str
    prompt_version: str
    segments: Mapping[str, str]


class _EvaluatorName(NamedTuple):
    """Where an evaluator is, with what a result may have changed: the thresholds of its metrics."""

    id: str
    module: str
    function: str
    version: int
    metrics: tuple[Metric, ...]

    @classmethod
    def of(cls, evaluator: Evaluator) -> "_EvaluatorName":
        function: Any = evaluator.score
        name = cls(evaluator.id, function.__module__, function.__qualname__, evaluator.version, evaluator.metrics)
        try:
            name.load()
        except pickle.UnpicklingError:
            advice = "define it at the top level of a module, under the name of its function"
            raise pickle.PicklingError(f"the evaluator {name.id!r} cannot be pickled; {advice}") from None
        return name

    def load(self) -> Evaluator:
        try:
            found = getattr(import_module(self.module), self.function, None)
        except ImportError:
            found = None
        if not isinstance(found, Evaluator) or found.id != self.id:
            where = f"{self.function} of the module {self.module}"
            raise pickle.UnpicklingError(f"the evaluator {self.id!r} is not {where} here; install its package")
        return replace(found, version=self.version, metrics=self.metrics)


@dataclass(slots=True)
class ScoreColumns:
    """The rows of one evaluator, one per trace that its tasks select. `trace` has places in the list of traces, rising.

    What most rows lack (`categories` and the like) is by row. Pickled, the evaluator is the name of its module and of
    its function there, as functions are; its metrics stay those of the result.
    """

    evaluator: Evaluator
    fingerprint: str
    trace: "array[int]" = field(default_factory=lambda: array("q"))
    status: list[str] = field(default_factory=list)
    reason: list[str] = field(default_factory=list)
    values: dict[str, "array[float]"] = field(default_factory=dict)  # by metric; ABSENT where there is no score
    weight: "array[float]" = field(default_factory=lambda: array("d"))
    categories: dict[int, Mapping[str, str]] = field(default_factory=dict)
    parts: dict[int, Mapping[str, float]] = field(default_factory=dict)
    evidence: dict[int, str] = field(default_factory=dict)  # JSON
    findings: dict[int, tuple[Finding, ...]] = field(default_factory=dict)
    explanations: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.status)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields to pickle. Raises `PicklingError` for an evaluator that no module has."""
        state = {one.name: getattr(self, one.name) for one in fields(self)}
        return state | {"evaluator": _EvaluatorName.of(self.evaluator)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the fields. Raises `UnpicklingError` for an evaluator that is not installed here."""
        for name, value in {**state, "evaluator": state["evaluator"].load()}.items():
            setattr(self, name, value)

    def append(self, place: int, row: ScoreRow, findings: tuple[Finding, ...], explanation: str = "") -> None:
        """Add the row of the trace at this place, with its findings and its explanation."""
        at = len(self.status)
        self.trace.append(place)
        self.status.append(row.status)
        self.reason.append(row.reason)
        self.weight.append(row.weight)
        for key, value in row.metrics.items():
            column = self.values.get(key)
            if column is None:
                column = self.values[key] = array("d", (ABSENT,)) * at
            column.append(value)
        if len(row.metrics) < len(self.values):
            for column in self.values.values():
                if len(column) == at:
                    column.append(ABSENT)
        if row.categories:
            self.categories[at] = row.categories
        if row.parts:
            self.parts[at] = row.parts
        if row.evidence != "[]":
            self.evidence[at] = row.evidence
        if findings:
            self.findings[at] = findings
        if explanation:
            self.explanations[at] = explanation

    def metrics_of(self, at: int) -> dict[str, float]:
        """The scores of a row by metric."""
        held = ((key, column[at]) for key, column in self.values.items())
        return {key: value for key, value in held if not math.isnan(value)}

    def selected(self, place_of: Mapping[int, int]) -> "ScoreColumns":
        """The rows of some traces: `place_of` has their new places by the old ones."""
        chosen = sorted((place_of[place], at) for at, place in enumerate(self.trace) if place in place_of)
        rows = [at for _, at in chosen]
        return ScoreColumns(
            self.evaluator,
            self.fingerprint,
            array("q", (place for place, _ in chosen)),
            [self.status[at] for at in rows],
            [self.reason[at] for at in rows],
            {key: array("d", (column[at] for at in rows)) for key, column in self.values.items()},
            array("d", (self.weight[at] for at in rows)),
            {new: self.categories[at] for new, at in enumerate(rows) if at in self.categories},
            {new: self.parts[at] for new, at in enumerate(rows) if at in self.parts},
            {new: self.evidence[at] for new, at in enumerate(rows) if at in self.evidence},
            {new: self.findings[at] for new, at in enumerate(rows) if at in self.findings},
            {new: self.explanations[at] for new, at in enumerate(rows) if at in self.explanations},
        )


class Collected(NamedTuple):
    """Traces in the order of their records, and their scores. `replaced` counts traces whose id came again later."""

    traces: tuple[EvaluatedTrace, ...]
    columns: Mapping[str, ScoreColumns]
    replaced: int


class Collector:
    """Takes in blocks of the pipeline. Of several records with one trace id the last one counts, as in the tables."""

    def __init__(self, plan: Iterable[PreparedEvaluator]) -> None:
        self._columns = {one.evaluator.id: ScoreColumns(one.evaluator, one.fingerprint) for one in plan}
        self._traces: list[EvaluatedTrace] = []
        self._place_of: dict[str, int] = {}  # by trace id
        self._decoded = 0

    def add(self, block: Block, decoded: int, findings: Mapping[ScoreKey, tuple[Finding, ...]]) -> None:
        """Add the rows of one slice, which had `decoded` traces, with the findings of some rows."""
        self._decoded += decoded
        places: dict[tuple[str, int], int] = {}
        for row in block.traces:
            place = places[row.trace_id, row.version] = len(self._traces)
            model, prompt = row.model, row.prompt_version
            names = (row.trace_id, row.app, row.environment, row.time, row.task, model, prompt, row.segments)
            self._traces.append(EvaluatedTrace(row.offset, *names))
            before = self._place_of.setdefault(row.trace_id, place)
            if self._traces[before].record < row.offset:
                self._place_of[row.trace_id] = place
        columns = self._columns
        explained = {(one.evaluator, one.trace_id, one.version): one.explanation for one in block.explanations}
        for score in block.scores:
            key = (score.evaluator, score.trace_id, score.version)
            place, found = places[score.trace_id, without_evaluator(score.version)], findings.get(key, ())
            columns[score.evaluator].append(place, score, found, explained.get(key, ""))

    def finish(self) -> Collected:
        """Leave out replaced records."""
        kept = sorted(self._place_of.values(), key=lambda place: self._traces[place].record)
        replaced = self._decoded - len(kept)
        if not replaced:
            return Collected(tuple(self._traces), self._columns, 0)
        place_of = {old: new for new, old in enumerate(kept)}
        columns = {id: columns.selected(place_of) for id, columns in self._columns.items()}
        return Collected(tuple(self._traces[place] for place in kept), columns, replaced)
