"""Query and result of a comparison of two runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from ragtide.evaluators.spec import Better

ChangeVerdict = Literal["worse", "better", "differs", "same", "unknown"]


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """What to compare: event times in [start, end) and the named metrics; all metrics if none is named.

    `alpha` bounds the expected share of false findings; intervals have confidence 1 - alpha. Differences below
    `min_change`, in the metric's unit, are ignored. `top`: number of traces to list per metric.
    """

    run_a: str
    run_b: str
    app: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    metrics: tuple[str, ...] = ()
    alpha: float = 0.05
    min_change: float = 0.0
    top: int = 3


class MovedTrace(NamedTuple):
    """A trace with a value in both runs."""

    trace_id: str
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric in both runs; None: could not be computed. Coverage is scored / applicable.

    `paired` traces have a value in both runs, `only_a` and `only_b` in one. Means and difference use the pairs
    (method "paired") or all values ("welch"). `p_adjusted` is corrected for all metrics compared.
    """

    metric: str
    better: Better | None  # None: no installed evaluator declares it
    verdict: ChangeVerdict
    method: Literal["paired", "welch"]
    paired: int
    only_a: int
    only_b: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    coverage_a: float | None
    coverage_b: float | None
    moved: tuple[MovedTrace, ...]


class VersionPair(NamedTuple):
    """Versions of an evaluator that scored each run, at most five each."""

    a: tuple[str, ...]
    b: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Metrics of both runs, evaluators of only one, and evaluators whose versions differ."""

    metrics: tuple[MetricChange, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    fingerprints: Mapping[str, VersionPair]
    incomplete: tuple[str, ...]  # runs whose replay is unfinished

    @property
    def worse(self) -> tuple[str, ...]:
        """Names of the metrics that got worse."""
        return tuple(change.metric for change in self.metrics if change.verdict == "worse")
