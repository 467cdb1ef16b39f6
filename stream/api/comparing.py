"""Compare two results: sums of their scores, decided on by the code that compares stored runs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ragtide.drift.compare import (
    FAILURE,
    CompareQuery,
    Comparison,
    EvaluatorRun,
    MetricChange,
    MetricSums,
    MovedTrace,
    compare_sums,
    shared_evaluators,
)
from ragtide.drift.windows import metrics_by_name
from ragtide.evaluators.errors import ConfigError
from ragtide.stream.api import frames
from ragtide.stream.api.columns import EvaluatedTrace, ScoreColumns
from ragtide.stream.api.comparison_text import change_table, notes_of, traces_of
from ragtide.stream.api.summary import sample_of
from ragtide.stream.api.text_table import lines_to_html

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """Metrics of result B (the other) against those of A: differences B - A with their intervals and decisions."""

    comparison: Comparison
    alpha: float

    @property
    def metrics(self) -> tuple[MetricChange, ...]:
        """One change per metric that both results have, by name."""
        return self.comparison.metrics

    @property
    def worse(self) -> tuple[str, ...]:
        """Names of the metrics that are worse in B."""
        return self.comparison.worse

    @property
    def better(self) -> tuple[str, ...]:
        """Names of the metrics that are better in B."""
        return tuple(change.metric for change in self.metrics if change.verdict == "better")

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row per metric; raises `ConfigError` if pandas is not installed."""
        return frames.to_pandas({name: [getattr(one, name) for one in self.metrics] for name in _COLUMNS})

    def __repr__(self) -> str:
        lines = [*traces_of(self.metrics), *notes_of(self.comparison, "A", "B")]
        return "\n".join([change_table(self.metrics, self.alpha).to_text(), *lines])

    def _repr_html_(self) -> str:
        lines = [*traces_of(self.metrics), *notes_of(self.comparison, "A", "B")]
        return change_table(self.metrics, self.alpha).to_html() + lines_to_html([line for line in lines if line])


_COLUMNS = tuple(name for name in MetricChange.__dataclass_fields__ if name != "moved")


def compare_results(
    traces_a: Sequence[EvaluatedTrace],
    columns_a: Mapping[str, ScoreColumns],
    traces_b: Sequence[EvaluatedTrace],
    columns_b: Mapping[str, ScoreColumns],
    metrics: tuple[str, ...],
    alpha: float,
    min_change: float,
    top: int,
) -> ResultComparison:
    """Compare B with A; see `Result.compare`."""
    if not 0 < alpha < 1 or min_change < 0:
        raise ConfigError(f"compare: alpha {alpha} must lie between 0 and 1, and min_change {min_change} be at least 0")
    query = CompareQuery("A", "B", metrics=metrics, alpha=alpha, min_change=min_change, top=top)
    of_a, of_b = _runs(columns_a), _runs(columns_b)
    place_in_a = {trace.trace_id: place for place, trace in enumerate(traces_a)}
    a_of_b = np.array([place_in_a.get(trace.trace_id, -1) for trace in traces_b], np.int64)
    sums = {
        name: list(_metric_sums(columns_a[name], columns_b[name], traces_a, a_of_b, top))
        for name in shared_evaluators(of_a, of_b, query)
    }
    both = {name: columns.evaluator for name, columns in {**columns_b, **columns_a}.items()}
    return ResultComparison(compare_sums(sums, of_a, of_b, metrics_by_name(both), query), alpha)


def _runs(columns: Mapping[str, ScoreColumns]) -> dict[str, EvaluatorRun]:
    """Failures and version of each evaluator that ran on a trace."""
    return {
        name: EvaluatorRun(Counter(one.status)["failed"], (one.fingerprint,))
        for name, one in columns.items()
        if len(one)
    }


def _metric_sums(
    a: ScoreColumns, b: ScoreColumns, traces_a: Sequence[EvaluatedTrace], a_of_b: npt.NDArray[np.int64], top: int
) -> Iterator[MetricSums]:
    """Sum each metric of an evaluator, and its failures, sorted by key."""
    for key in sorted({FAILURE, *a.values, *b.values}):
        of_a, of_b = _by_trace(a, key, len(traces_a)), _by_trace(b, key, len(a_of_b))
        paired_b = np.flatnonzero(a_of_b >= 0)
        paired_a = a_of_b[paired_b]
        there = ~np.isnan(of_a[paired_a]) & ~np.isnan(of_b[paired_b])
        places, pair_a, pair_b = paired_a[there], of_a[paired_a][there], of_b[paired_b][there]
        yield MetricSums(
            key=key,
            a=sample_of(of_a[~np.isnan(of_a)]),
            b=sample_of(of_b[~np.isnan(of_b)]),
            pairs_a=sample_of(pair_a).mean,
            pairs_b=sample_of(pair_b).mean,
            differences=sample_of(pair_b - pair_a),
            moved=_moved(places, pair_a, pair_b, traces_a, top),
        )


def _by_trace(columns: ScoreColumns, key: str, traces: int) -> Values:
    """A value for each trace, NaN where there is none; of failures 1 or 0 where the evaluator applies."""
    values = np.full(traces, np.nan)
    places = np.frombuffer(columns.trace, np.int64)
    if key == FAILURE:
        status = np.array(columns.status, object)
        applies = (status == "scored") | (status == "failed")
        values[places[applies]] = status[applies] == "failed"
    elif key in columns.values:
        values[places] = np.frombuffer(columns.values[key], np.float64)
    return values


def _moved(
    places: npt.NDArray[np.int64], a: Values, b: Values, traces: Sequence[EvaluatedTrace], top: int
) -> tuple[MovedTrace, ...]:
    changed = np.flatnonzero(a != b)
    ids = {at: traces[places[at]].trace_id for at in changed}
    most = sorted(changed, key=lambda at: (-abs(b[at] - a[at]), ids[at]))[:top]
    return tuple(MovedTrace(ids[at], float(a[at]), float(b[at])) for at in most)
