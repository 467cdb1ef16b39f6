"""SQL of error budgets: what the objectives of the settings have left at the end of the time range."""

from collections.abc import Iterator, Mapping, Sequence

from ragtide.dashboards.sql import FLEET, Tables, among
from ragtide.dashboards.variable_sql import literal
from ragtide.drift.settings import Objective
from ragtide.drift.sql import array
from ragtide.drift.windows import MetricRef, bin_bounds, count_out_of_bounds


def budgets_left(tables: Tables, objectives: Sequence[Objective], metrics: Mapping[str, MetricRef]) -> str:
    """One row per application, environment and objective: `budget_left` (1: untouched, 0: spent) and its `records`.

    As `ragtide.drift.checks.error_budget` computes it, over the objective's period that ends with the time range, in
    whole hours where one is closed.
    """
    parts = [_left(tables, one, other, metrics[one.metric]) for one, other in effective(objectives, metrics)]
    nothing = "SELECT '' AS app, '' AS environment, '' AS objective, 0. AS budget_left, 0 AS records WHERE 0"
    return " UNION ALL ".join(parts or [nothing])


def effective(
    objectives: Sequence[Objective], metrics: Mapping[str, MetricRef]
) -> Iterator[tuple[Objective, list[str]]]:
    """Each enabled objective whose metric there is, with the applications that have one of their own by its name."""
    for one in objectives:
        if one.enabled and one.metric in metrics:
            own = [other.app for other in objectives if other.name == one.name and other.app is not None]
            yield one, own if one.app is None else []


def _left(tables: Tables, objective: Objective, others: Sequence[str], metric: MetricRef) -> str:
    bad = count_out_of_bounds(*bin_bounds(metric.scale, *objective.bounds(metric.metric)))
    since = f"toStartOfHour($__toTime - INTERVAL {objective.period_days} DAY)"
    scope = FLEET if objective.app is None else f"{FLEET} AND app = {literal(objective.app)}"
    if others:
        scope += f" AND NOT has({array(map(literal, others), 'String')}, app)"
    windows = tables.covering(among([objective.metric]), scope, since=since, whole_hours=True)
    return (
        f"SELECT app, environment, {literal(objective.name)} AS objective, "
        f"1 - sum({bad}) / sum(scored) / {1 - objective.target!r} AS budget_left, sum(scored) AS records "
        f"{windows} WHERE scored > 0 GROUP BY app, environment"
    )
