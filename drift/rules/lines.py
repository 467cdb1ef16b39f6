"""Which line of a rule a number crosses."""

from typing import NamedTuple

from drift.rules.series import Rule

ROUNDING = 1e-9  # a mean of equal numbers may differ from them in its last digits


class Crossing(NamedTuple):
    """The line that was crossed; where none was, the one that is nearest."""

    threshold: float
    breached: bool


def crossed(value: float, rule: Rule) -> Crossing:
    """Equal to a line, but for rounding, is good. A rule has at least one line."""
    if rule.least is not None and value < rule.least - ROUNDING * abs(rule.least):
        return Crossing(rule.least, True)
    if rule.greatest is not None and value > rule.greatest + ROUNDING * abs(rule.greatest):
        return Crossing(rule.greatest, True)
    lines = [line for line in (rule.least, rule.greatest) if line is not None]
    return Crossing(min(lines, key=lambda line: abs(line - value)), False)
