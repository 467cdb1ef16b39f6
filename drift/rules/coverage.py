"""Rule `coverage`: too many of the records that should have been scored were not."""

from drift.rules.series import Judgement, Rule, Window


def judge(window: Window, rule: Rule) -> Judgement:
    """Breached where the share of applicable records without a score is above the limit."""
    share = window.failed / window.applicable
    return Judgement(share, rule.limit, share > rule.limit, window.applicable, window.failed)
