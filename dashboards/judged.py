"""How dashboards judge a metric: as the rules of the settings do, for every application alike."""

from collections.abc import Mapping
from typing import NamedTuple

from drift.rules.choose import rule_anywhere
from drift.settings import RuleSettings
from drift.windows.metrics import metrics_by_name
from evaluators.spec import Evaluator


class Judged(NamedTuple):
    """One metric's line between good and bad records, and how a time range is judged by it.

    `limit` is the greatest good share of records on the wrong side of the line; None where the mean is judged. `edge`
    is the bin of the line: records in bins further on its bad side are wrong.
    """

    metric: str
    line: float
    least: bool  # the line is the least good value, else the greatest
    edge: int
    limit: float | None
    share: bool  # its values go from 0 to 1
    own: bool  # windows have a number of their own, which no mean over records is


def judged(registry: Mapping[str, Evaluator], rules: RuleSettings) -> dict[str, Judged]:
    """Every metric that a rule watches, by name. What settings say of one application or segment is left out."""
    found: dict[str, Judged] = {}
    for name, metric in metrics_by_name(registry).items():
        rule = rule_anywhere(metric, rules)
        if rule is None:
            continue
        least = rule.least is not None and (rule.greatest is None or metric.metric.better == "higher")
        line = rule.least if least else rule.greatest
        if line is not None:
            edge = metric.scale.bin(metric.scale.snap(line))
            limit = {"any": 0.0, "share": rule.limit}.get(rule.kind)
            share = (metric.metric.low, metric.metric.high) == (0.0, 1.0)
            found[name] = Judged(name, line, least, edge, limit, share, rule.kind == "value")
    return found
