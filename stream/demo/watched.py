"""Which metrics the demo shows, and the line between good and bad for each, as the rules draw it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from drift.rules.choose import rule_anywhere
from drift.rules.series import Kind, Rule
from drift.settings import RuleSettings
from drift.windows.metrics import metrics_by_name
from evaluators.spec import Evaluator


@dataclass(frozen=True, slots=True)
class Watched:
    """A metric that a rule watches: a window is good while its mean (or its share of good records) stays within."""

    metric: str
    rule: Kind
    low: float | None
    high: float | None
    unit: str

    def good(self, mean: float) -> bool:
        """Whether a window with this mean is on the good side."""
        return (self.low is None or mean >= self.low) and (self.high is None or mean <= self.high)


def watched(evaluators: Iterable[Evaluator], rules: RuleSettings, names: Sequence[str]) -> tuple[Watched, ...]:
    """The metrics `names` with their limits, in this order; those that no rule watches are left out."""
    metrics = metrics_by_name({evaluator.id: evaluator for evaluator in evaluators})
    found = (rule_anywhere(metrics[name], rules) for name in names if name in metrics)
    return tuple(_watched(rule) for rule in found if rule is not None)


def _watched(rule: Rule) -> Watched:
    low, high = rule.least, rule.greatest
    if rule.kind in ("any", "share"):  # records are 0 or 1, so that the mean is the share of one kind
        bad = 0.0 if rule.kind == "any" else rule.limit
        low, high = (None, bad) if low is None else (1 - bad, None)
    return Watched(rule.watched.name, rule.kind, low, high, rule.watched.metric.unit or "")
