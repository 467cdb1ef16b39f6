"""Rule `mean`: the mean of a window's scores is on the wrong side of the line."""

from drift.rules.lines import crossed
from drift.rules.series import Judgement, Rule, Window


def judge(window: Window, rule: Rule) -> Judgement:
    """Breached where the mean lies below the least or above the greatest good value."""
    mean = window.sum / window.scored
    threshold, breached = crossed(mean, rule)
    return Judgement(mean, threshold, breached, window.scored, rule.wrong(window))
