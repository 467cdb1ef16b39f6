"""Rule `any`: one bad record is enough (a leak)."""

from drift.rules.series import Judgement, Rule, Window


def judge(window: Window, rule: Rule, allowed: int = 0) -> Judgement:
    """Breached where a record is beyond the lines; `allowed` of them are excused by the allow-list."""
    wrong = max(rule.wrong(window) - allowed, 0)
    return Judgement(float(wrong), 0.0, wrong > 0, window.scored, wrong)
