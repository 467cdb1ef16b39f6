"""The result of an evaluation: scores by trace, what was rejected, and the summary of each metric."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec
import numpy as np

from ragtide.drift.stats import CONFIDENCE
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import Evidence
from ragtide.stream.api import frames
from ragtide.stream.api.columns import EvaluatedTrace, ScoreColumns
from ragtide.stream.api.comparing import ResultComparison, compare_results
from ragtide.stream.api.result_text import describe, summary_table, without_scores
from ragtide.stream.api.summary import MetricSummary, summarise
from ragtide.stream.api.text_table import lines_to_html
from ragtide.stream.known_names import nearest_of

if TYPE_CHECKING:
    from ragtide.stream.judge import Usage

Form = Literal["wide", "long"]
_EVIDENCE = msgspec.json.Decoder(tuple[Evidence, ...])


class Rejected(NamedTuple):
    """One fault of an invalid record, with the message of `ragtide validate`. `key` is the path of the field.

    `record` is the number of the record, from 1; of a file its line.
    """

    record: int
    key: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Score:
    """What one evaluator says of one trace. `metrics` is empty unless `status` is `scored`; `reason` says why.

    `findings` are kinds, as in table `scores`; `finding_texts` describes each, in the same order. `explanation` is what
    a judge wrote about the score, if it did.
    """

    record: int
    trace_id: str
    evaluator: str
    status: Literal["scored", "not_applicable", "failed", "sampled_out"]
    reason: str
    metrics: Mapping[str, float]
    categories: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[str, ...] = ()
    fingerprint: str = ""
    weight: float = 1.0
    finding_texts: tuple[str, ...] = ()
    explanation: str = ""


@dataclass(frozen=True)
class Result:
    """Scores of every trace.

    `traces` are in the order of the records. `rejected` has the faults of records that are no traces, `replaced` counts
    traces whose id a later record has too. `unavailable` names evaluators that are on by default and cannot run, with
    what to install. `notes` says how records were read: values of another form, and fields that nothing measures.
    `judge_usage_by_endpoint` sums up calls of judges, their failures, tokens and cost. A result can be pickled if its
    evaluators are in modules that can be imported.
    """

    traces: tuple[EvaluatedTrace, ...]
    columns: Mapping[str, ScoreColumns]
    rejected: tuple[Rejected, ...] = ()
    replaced: int = 0
    unavailable: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    judge_usage_by_endpoint: "Mapping[str, Usage]" = field(default_factory=dict)

    @property
    def evaluators(self) -> tuple[str, ...]:
        """Names of the evaluators that ran, sorted."""
        return tuple(self.columns)

    @property
    def judge_usage(self) -> tuple[str, ...]:
        """A line for each endpoint of judges: calls, failures, tokens and cost."""
        if not self.judge_usage_by_endpoint:
            return ()
        from ragtide.stream.judge import usage_lines  # aiohttp takes a tenth of a second

        return tuple(usage_lines(self.judge_usage_by_endpoint))

    @property
    def rejected_records(self) -> int:
        """Number of invalid records."""
        return len({one.record for one in self.rejected})

    def __len__(self) -> int:
        """Number of traces."""
        return len(self.traces)

    def __getitem__(self, trace_id: str) -> dict[str, Score]:
        """Return the scores of a trace, by evaluator. Raises KeyError for an unknown id."""
        place = self._place_of[trace_id]
        found = {}
        for id, columns in self.columns.items():
            at = bisect_left(columns.trace, place)
            if at < len(columns) and columns.trace[at] == place:
                found[id] = self._score(columns, at)
        return found

    def scores(self, evaluator: str | None = None) -> Iterator[Score]:
        """Yield every score, by evaluator and then by record; of one evaluator if it is named.

        A trace that an evaluator's tasks do not select has no score of it, as in table `scores`. Raises `ConfigError`
        for an evaluator that did not run.
        """
        if evaluator is not None and evaluator not in self.columns:
            raise ConfigError(f"scores: {evaluator!r} did not run; {nearest_of(str(evaluator), self.columns)}")
        return self._scores(evaluator)

    def _scores(self, evaluator: str | None) -> Iterator[Score]:
        chosen = self.columns.values() if evaluator is None else [self.columns[evaluator]]
        for columns in chosen:
            for at in range(len(columns)):
                yield self._score(columns, at)

    def summary(self, confidence: float = CONFIDENCE) -> tuple[MetricSummary, ...]:
        """Summarise each metric, sorted by evaluator; `confidence` is that of the intervals, between 0 and 1.

        Raises `ConfigError` for another confidence.
        """
        if not 0 < confidence < 1:
            raise ConfigError(f"summary: confidence is {confidence}; it must lie between 0 and 1, such as 0.95")
        seen = len(self.traces)
        return tuple(one for columns in self.columns.values() for one in summarise(columns, seen, confidence))

    def compare(
        self,
        other: "Result",
        *,
        metrics: Sequence[str] | str = (),
        alpha: float = 0.05,
        min_change: float = 0.0,
        top: int = 3,
    ) -> ResultComparison:
        """Compare the metrics of `other` with these, as `ragtide compare` does with two runs: A is this, B the other.

        Traces with one id are compared in pairs (Student's t). If fewer than half of the smaller result's traces have a
        pair, all values are compared as independent (Welch's t). A metric is worse or better if its p-value is at most
        `alpha` after Benjamini-Hochberg correction for the number of metrics, and the difference at least `min_change`
        in the metric's unit. `metrics` names metrics or evaluators; empty: all. `top`: traces to list per metric.
        Raises `ConfigError` for a metric that neither result has, and if `other` is no result.
        """
        if not isinstance(other, Result):
            raise ConfigError(f"compare: found a value of type {type(other).__name__}; give the result of `evaluate`")
        named = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        return compare_results(self.traces, self.columns, other.traces, other.columns, named, alpha, min_change, top)

    def to_pandas(self, form: Form = "wide") -> Any:
        """Return a DataFrame; raises `ConfigError` if pandas is not installed, and for another form.

        `wide`: one row per trace, one column per metric (`evaluator.metric`), NaN where there is no score. `long`: one
        row per trace and metric, with the status and the reason of each missing value.
        """
        return frames.to_pandas(self._table(form), _TYPES)

    def to_arrow(self, form: Form = "wide") -> Any:
        """Return an Arrow table, as `to_pandas`, with null where there is no score; raises as `to_pandas`."""
        return frames.to_arrow(self._table(form), _TYPES)

    def __repr__(self) -> str:
        metrics = self.summary()
        return "\n".join([*describe(self), summary_table(metrics).to_text(), *without_scores(metrics)])

    def _repr_html_(self) -> str:
        metrics = self.summary()
        table = summary_table(metrics).to_html()
        return lines_to_html(describe(self)) + table + lines_to_html(without_scores(metrics))

    @cached_property
    def _place_of(self) -> Mapping[str, int]:
        return {trace.trace_id: place for place, trace in enumerate(self.traces)}

    def _score(self, columns: ScoreColumns, at: int) -> Score:
        trace = self.traces[columns.trace[at]]
        findings = columns.findings.get(at, ())
        return Score(
            trace.record,
            trace.trace_id,
            columns.evaluator.id,
            columns.status[at],  # type: ignore[arg-type]  # the pipeline writes no other status
            columns.reason[at],
            columns.metrics_of(at),
            columns.categories.get(at, {}),
            columns.parts.get(at, {}),
            _EVIDENCE.decode(columns.evidence.get(at, "[]")),
            tuple(finding.kind for finding in findings),
            columns.fingerprint,
            columns.weight[at],
            tuple(finding.text for finding in findings),
            columns.explanations.get(at, ""),
        )

    def _table(self, form: Form) -> dict[str, Any]:
        if form not in get_args(Form):
            raise ConfigError(f"there is no form {form!r} (valid: {', '.join(get_args(Form))})")
        of_traces = {name: [getattr(one, name) for one in self.traces] for name in _TRACE_COLUMNS}
        if form == "wide":
            return of_traces | dict(self._wide_columns())
        return self._long_columns({name: np.array(cells, object) for name, cells in of_traces.items()})

    def _wide_columns(self) -> Iterator[tuple[str, Any]]:
        for id, columns in self.columns.items():
            places = np.frombuffer(columns.trace, np.int64) if len(columns) else np.empty(0, np.int64)
            for key in _plain_keys(columns):
                values = np.full(len(self.traces), np.nan)
                if key in columns.values:
                    values[places] = np.frombuffer(columns.values[key], np.float64)
                yield f"{id}.{key}", values

    def _long_columns(self, of_traces: Mapping[str, Any]) -> dict[str, Any]:
        parts: list[dict[str, Any]] = []
        for id, columns in self.columns.items():
            if not len(columns):
                continue
            places = np.frombuffer(columns.trace, np.int64)
            status, reason = np.array(columns.status, object), np.array(columns.reason, object)
            for key in _plain_keys(columns):
                held = columns.values.get(key)
                values = np.frombuffer(held, np.float64) if held else np.full(len(columns), np.nan)
                absent = (status == "scored") & np.isnan(values)
                part = {name: cells[places] for name, cells in of_traces.items()}
                names = {"evaluator": id, "metric": f"{id}.{key}"}
                part |= {name: np.full(len(columns), text, object) for name, text in names.items()}
                part |= {"value": values, "status": status, "reason": np.where(absent, "not_recorded", reason)}
                parts.append(part)
        names_of = (*of_traces, "evaluator", "metric", "value", "status", "reason")
        empty = {name: np.empty(0, np.float64 if name == "value" else object) for name in names_of}
        return {name: np.concatenate([part[name] for part in parts or [empty]]) for name in names_of}


_TRACE_COLUMNS = ("record", "trace_id", "app", "environment", "time", "model", "prompt_version")
_TEXTS = ("trace_id", "app", "environment", "model", "prompt_version", "evaluator", "metric", "status", "reason")
_TYPES = {"record": int, "time": datetime, "value": float, **dict.fromkeys(_TEXTS, str)}


def _plain_keys(columns: ScoreColumns) -> list[str]:
    """Keys of the metrics that single traces have."""
    return [metric.key for metric in columns.evaluator.metrics if not metric.per]
