"""What the roll-up must know of metrics: their scale, whether they are primary, and their evaluator's lane."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from drift.windows.bins import Scale
from evaluators.spec import Evaluator, Metric


@dataclass(frozen=True, slots=True)
class WatchedMetric:
    """One metric under its name outside its evaluator's file, `evaluator.metric`."""

    evaluator: Evaluator
    metric: Metric

    @property
    def name(self) -> str:
        """`evaluator.metric`."""
        return f"{self.evaluator.id}.{self.metric.key}"

    @property
    def carrier(self) -> "WatchedMetric | None":
        """Of method `window`: the metric whose windows hold the parts and the records' own values."""
        carrier = self.evaluator.carrier
        return None if carrier is None else WatchedMetric(self.evaluator, carrier)

    @property
    def scale(self) -> Scale:
        """How its values fall into bins."""
        return Scale.of(self.metric)


def metrics_by_name(evaluators: Mapping[str, Evaluator]) -> dict[str, WatchedMetric]:
    """Every metric of the evaluators, by name."""
    return {
        found.name: found
        for evaluator in evaluators.values()
        for found in (WatchedMetric(evaluator, metric) for metric in evaluator.metrics)
    }


class OwnMetrics(NamedTuple):
    """Names that matter where windows have metrics of their own: evaluators of method `window`, and their metrics.

    `carriers` have the parts of all in their windows; `plain` are those without `per`, carriers too.
    """

    evaluators: frozenset[str]
    carriers: frozenset[str]
    plain: frozenset[str]
    per: frozenset[str]


def own_metrics(metrics: Iterable[WatchedMetric]) -> OwnMetrics:
    """Those among the metrics."""
    own = [found for found in metrics if found.evaluator.combine is not None]
    return OwnMetrics(
        frozenset(found.evaluator.id for found in own),
        frozenset(found.name for found in own if found.metric is found.evaluator.carrier),
        frozenset(found.name for found in own if not found.metric.per),
        frozenset(found.name for found in own if found.metric.per),
    )


def lanes_of(evaluators: Iterable[Evaluator]) -> dict[str, list[str]]:
    """Evaluator ids by lane, sorted."""
    lanes: dict[str, list[str]] = {}
    for evaluator in evaluators:
        lanes.setdefault(evaluator.lane, []).append(evaluator.id)
    return {lane: sorted(ids) for lane, ids in sorted(lanes.items())}
