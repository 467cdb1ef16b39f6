"""Rule `value`: the window's own number is on the wrong side of the line.

A window metric is a quotient of counts summed over the window: the parts `<key>_numerator` and `<key>_denominator`.
Where the records carry the metric themselves, the window's number is their mean.
"""

from drift.rules.lines import crossed
from drift.rules.series import Judgement, Rule, Window


def judge(window: Window, rule: Rule) -> Judgement | None:
    """Breached where the window's number lies beyond a line; None where the window has no such number."""
    key = rule.watched.metric.key
    denominator = window.parts.get(f"{key}_denominator", 0.0)
    if denominator:
        value = window.parts.get(f"{key}_numerator", 0.0) / denominator
    elif window.scored:
        value = window.sum / window.scored
    else:
        return None
    threshold, breached = crossed(value, rule)
    return Judgement(value, threshold, breached, window.applicable, rule.wrong(window))
