"""What is asked of a comparison of two runs, and what comes of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from ragtide.evaluators.spec import Better

ChangeVerdict = Literal["worse", "better", "differs", "same", "unknown"]


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """What to compare: event times in [start, end), and of the metrics those named, all where none is.

    `alpha` bounds the share of findings that are chance; intervals have confidence 1 - alpha. A difference below
    `min_change`, in the metric's unit, is none. `top` traces are named per metric.
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
    """A trace that has a value in both runs, by its id alone."""

    trace_id: str
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric in both runs. None is what could not be told; `coverage` is scored / applicable.

    `paired` traces have a value in both runs, `only_a` and `only_b` in one. Means and difference are of the pairs by
    method "paired", of all values by "welch". `p_adjusted` is over all metrics compared.
    """

    metric: str
    better: Better | None  # None: no evaluator that is installed declares it
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
    """Under which an evaluator scored each run, five at most."""

    a: tuple[str, ...]
    b: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every metric that both runs have; evaluators that only one has; those whose fingerprints differ."""

    metrics: tuple[MetricChange, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    fingerprints: Mapping[str, VersionPair]
    incomplete: tuple[str, ...]  # runs whose replay has not completed

    @property
    def worse(self) -> tuple[str, ...]:
        """The metrics that are."""
        return tuple(change.metric for change in self.metrics if change.verdict == "worse")
