"""Metrics that the demo shows, with their limits from the rules."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragtide.drift.rules import Rule, rule_of_every_app
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows import metrics_by_name
from ragtide.evaluators.spec import Evaluator


@dataclass(frozen=True, slots=True)
class ShownMetric:
    """A metric with its limits: a window is good while its mean (or its share of good records) stays within them."""

    metric: str
    rule: str
    low: float | None
    high: float | None
    unit: str

    def good(self, mean: float) -> bool:
        """Whether a window with this mean is within the limits."""
        return (self.low is None or mean >= self.low) and (self.high is None or mean <= self.high)


def shown_metrics(
    evaluators: Iterable[Evaluator], rules: RuleSettings, names: Sequence[str]
) -> tuple[ShownMetric, ...]:
    """The metrics `names` with their limits, in this order. Metrics without a rule are left out."""
    metrics = metrics_by_name({evaluator.id: evaluator for evaluator in evaluators})
    found = (rule_of_every_app(metrics[name], rules) for name in names if name in metrics)
    return tuple(_shown_metric(rule) for rule in found if rule is not None)


def _shown_metric(rule: Rule) -> ShownMetric:
    low, high = rule.min, rule.max
    bad = rule.kind.max_bad_share(rule)
    if bad is not None:  # records are 0 or 1, so that the mean is the share of one kind
        low, high = (None, bad) if low is None else (1 - bad, None)
    return ShownMetric(rule.metric_ref.name, rule.kind.name, low, high, rule.metric_ref.metric.unit or "")
