"""Which metrics the demo shows, and the line between good and bad for each: settings over the evaluators' own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from drift.settings import RuleOverride, RuleSettings
from evaluators.spec import Evaluator, Metric, Rule


@dataclass(frozen=True, slots=True)
class Watched:
    """A metric that a rule watches: a window is good while its mean (or its share of good records) stays within."""

    metric: str
    rule: Rule
    low: float | None
    high: float | None
    unit: str

    def good(self, mean: float) -> bool:
        """Whether a window with this mean is on the good side."""
        return (self.low is None or mean >= self.low) and (self.high is None or mean <= self.high)


def watched(evaluators: Iterable[Evaluator], rules: RuleSettings, names: Sequence[str]) -> tuple[Watched, ...]:
    """The metrics `names` with their limits, in this order; those without a limit are left out."""
    metrics = {
        f"{evaluator.id}.{metric.key}": (evaluator, metric) for evaluator in evaluators for metric in evaluator.metrics
    }
    overrides = {override.metric: override for override in rules.overrides}
    found = (_watched(name, *metrics[name], overrides.get(name), rules) for name in names if name in metrics)
    return tuple(one for one in found if one.low is not None or one.high is not None)


def _watched(
    name: str, evaluator: Evaluator, metric: Metric, override: RuleOverride | None, rules: RuleSettings
) -> Watched:
    rule = (override.rule if override else None) or evaluator.rule_of(metric)
    higher = metric.better == "higher"
    low, high = (metric.threshold, None) if higher else (None, metric.threshold)
    if override and (override.min is not None or override.max is not None):
        low, high = override.min, override.max
    if rule in ("any", "share"):  # records are 0 or 1, so that the mean is the share of one kind
        limit = override.limit if override and override.limit is not None else rules.share_limit
        bad = 0.0 if rule == "any" else limit
        low, high = (1 - bad, None) if higher else (None, bad)
    return Watched(name, rule, low, high, metric.unit or "")
