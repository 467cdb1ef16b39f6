"""Which metrics the demo shows, and the line between good and bad for each, as the rules draw it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragtide.drift.rules.model import Rule
from ragtide.drift.rules.resolve import rule_of_every_app
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.evaluators.spec import Evaluator


@dataclass(frozen=True, slots=True)
class Watched:
    """A metric that a rule watches: a window is good while its mean (or its share of good records) stays within."""

    metric: str
    rule: str
    low: float | None
    high: float | None
    unit: str

    def good(self, mean: float) -> bool:
        """Whether a window with this mean is on the good side."""
        return (self.low is None or mean >= self.low) and (self.high is None or mean <= self.high)


def watched(evaluators: Iterable[Evaluator], rules: RuleSettings, names: Sequence[str]) -> tuple[Watched, ...]:
    """The metrics `names` with their limits, in this order; those that no rule watches are left out."""
    metrics = metrics_by_name({evaluator.id: evaluator for evaluator in evaluators})
    found = (rule_of_every_app(metrics[name], rules) for name in names if name in metrics)
    return tuple(_watched(rule) for rule in found if rule is not None)


def _watched(rule: Rule) -> Watched:
    low, high = rule.min, rule.max
    bad = rule.kind.max_bad_share(rule)
    if bad is not None:  # records are 0 or 1, so that the mean is the share of one kind
        low, high = (None, bad) if low is None else (1 - bad, None)
    return Watched(rule.metric_ref.name, rule.kind.name, low, high, rule.metric_ref.metric.unit or "")
