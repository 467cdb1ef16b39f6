"""Metrics with their evaluators: names, bounds, scales and lanes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ragtide.drift.windows.histogram import Scale
from ragtide.evaluators.spec import Evaluator, Metric


@dataclass(frozen=True, slots=True)
class MetricRef:
    """A metric with its evaluator."""

    evaluator: Evaluator
    metric: Metric

    @property
    def name(self) -> str:
        """`evaluator.metric`."""
        return f"{self.evaluator.id}.{self.metric.key}"

    @property
    def counts_metric(self) -> "MetricRef | None":
        """Of method `window`: the carrier, whose windows hold the parts and the values of single records."""
        carrier = self.evaluator.carrier
        return None if carrier is None else MetricRef(self.evaluator, carrier)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The smallest and the largest good value of a record, by the metric's own threshold."""
        threshold = self.metric.threshold
        return (threshold, None) if self.metric.better == "higher" else (None, threshold)

    @property
    def scale(self) -> Scale:
        """How values fall into bins."""
        return Scale.of(self.metric)


def metrics_by_name(evaluators: Mapping[str, Evaluator]) -> dict[str, MetricRef]:
    """Return every metric of the evaluators, by name."""
    return {
        found.name: found
        for evaluator in evaluators.values()
        for found in (MetricRef(evaluator, metric) for metric in evaluator.metrics)
    }


class WindowMetricNames(NamedTuple):
    """Names of the evaluators of method `window` and of their metrics.

    `counts_metrics` are the carriers, with the parts in their windows; `plain` are metrics without `per`, carriers too.
    """

    evaluators: frozenset[str]
    counts_metrics: frozenset[str]
    plain: frozenset[str]
    per: frozenset[str]


def window_metrics(metrics: Iterable[MetricRef]) -> WindowMetricNames:
    """Pick the names of evaluators of method `window` and of their metrics."""
    own = [found for found in metrics if found.evaluator.combine is not None]
    return WindowMetricNames(
        frozenset(found.evaluator.id for found in own),
        frozenset(found.name for found in own if found.metric is found.evaluator.carrier),
        frozenset(found.name for found in own if not found.metric.per),
        frozenset(found.name for found in own if found.metric.per),
    )


def counter_metrics(evaluators: Iterable[Evaluator]) -> list[str]:
    """Pick one metric of each evaluator, a primary one if possible. Its windows count the traces seen."""
    found = []
    for evaluator in evaluators:
        plain = [metric for metric in evaluator.metrics if not metric.per]
        found += [f"{evaluator.id}.{metric.key}" for metric in sorted(plain, key=lambda one: not one.primary)[:1]]
    return sorted(found)


def evaluators_by_lane(evaluators: Iterable[Evaluator]) -> dict[str, list[str]]:
    """Return evaluator ids by lane, sorted."""
    lanes: dict[str, list[str]] = {}
    for evaluator in evaluators:
        lanes.setdefault(evaluator.lane, []).append(evaluator.id)
    return {lane: sorted(ids) for lane, ids in sorted(lanes.items())}
