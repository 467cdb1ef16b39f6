"""Rule `share`: too many of a window's records are on the wrong side; a mean of rare events never moves."""

from drift.rules.series import Judgement, Rule, Window


def judge(window: Window, rule: Rule) -> Judgement:
    """Breached where the share of records beyond the lines is above the limit."""
    wrong = rule.wrong(window)
    share = wrong / window.scored
    return Judgement(share, rule.limit, share > rule.limit, window.scored, wrong)
