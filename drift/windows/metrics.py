"""What the roll-up must know of metrics: their scale, whether they are primary, and their evaluator's lane."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
    def scale(self) -> Scale:
        """How its values fall into bins."""
        return Scale.of(self.metric)


def watched(evaluators: Mapping[str, Evaluator]) -> dict[str, WatchedMetric]:
    """Every metric of the evaluators, by name."""
    return {
        found.name: found
        for evaluator in evaluators.values()
        for found in (WatchedMetric(evaluator, metric) for metric in evaluator.metrics)
    }


def lanes_of(evaluators: Iterable[Evaluator]) -> dict[str, list[str]]:
    """Evaluator ids by lane, sorted."""
    lanes: dict[str, list[str]] = {}
    for evaluator in evaluators:
        lanes.setdefault(evaluator.lane, []).append(evaluator.id)
    return {lane: sorted(ids) for lane, ids in sorted(lanes.items())}
