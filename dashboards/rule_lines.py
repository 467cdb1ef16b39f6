"""Limits of metrics on dashboards: the rules of the settings that apply to every application."""

from collections.abc import Mapping
from typing import NamedTuple

from ragtide.drift.rules import rule_of_every_app
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows import metrics_by_name
from ragtide.evaluators.spec import Evaluator


class RuleLine(NamedTuple):
    """One metric's line between good and bad records, and how a time range is judged by it.

    `limit` is the greatest good share of records on the wrong side of the line; None where the mean is judged. `edge`
    is the bin of the line: records in bins further on its bad side are wrong.
    """

    metric: str
    line: float
    is_min: bool  # the line is the least good value, else the greatest
    edge: int
    limit: float | None
    share: bool  # its values go from 0 to 1
    own: bool  # windows have a number of their own, which no mean over records is


def rule_lines(registry: Mapping[str, Evaluator], rules: RuleSettings) -> dict[str, RuleLine]:
    """Lines of all metrics with a rule, by name. Overrides for applications and segments are left out."""
    found: dict[str, RuleLine] = {}
    for name, metric in metrics_by_name(registry).items():
        rule = rule_of_every_app(metric, rules)
        if rule is None:
            continue
        least = rule.min is not None and (rule.max is None or metric.metric.better == "higher")
        line = rule.min if least else rule.max
        if line is not None:
            edge = metric.scale.bin(metric.scale.snap(line))
            share = (metric.metric.low, metric.metric.high) == (0.0, 1.0)
            found[name] = RuleLine(
                name, line, least, edge, rule.kind.max_bad_share(rule), share, not rule.kind.per_record
            )
    return found
