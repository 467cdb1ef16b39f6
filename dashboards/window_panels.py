"""The panels of an evaluator of method `window`: its windows' own numbers, from its spec."""

from collections.abc import Iterator, Mapping

from ragtide.dashboards.metric_panels import coverage, good_side, name, primary, title_of, unit
from ragtide.dashboards.panels import lines, rows
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sdk import table, timeseries
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.window_sql import by_class, own_values
from ragtide.evaluators.spec import Evaluator

_OPEN = "Windows that are still open are not shown."


def window_panels(
    evaluator: Evaluator, tables: Tables, rule_lines: Mapping[str, RuleLine]
) -> Iterator[timeseries.Panel | table.Panel]:
    """Each primary metric with its line, the others together, a table of those by class, and the coverage."""
    plain = [metric for metric in evaluator.metrics if not metric.per]
    for metric in plain:
        if metric.primary:
            full = name(evaluator, metric)
            query = own_values(tables, {full: metric.key})
            panel = primary(evaluator, metric, [query], rule_lines.get(full), f" {_OPEN}")
            yield panel.display_name("${__field.labels.series}")
    others = [metric for metric in plain if not metric.primary]
    for grafana_unit in sorted({unit(metric) for metric in others}):
        alike = [metric for metric in others if unit(metric) == grafana_unit]
        says = "; ".join(
            f"{metric.key}: {good_side(metric, rule_lines.get(name(evaluator, metric)))}" for metric in alike
        )
        query = own_values(tables, {name(evaluator, metric): metric.key for metric in alike})
        panel = lines(title_of(evaluator, alike), f"Of whole windows. {says}. {_OPEN}", [query], grafana_unit, 8)
        yield panel.display_name("${__field.name} ${__field.labels.series}")
    for per in dict.fromkeys(metric.per for metric in evaluator.metrics if metric.per):
        metrics = {name(evaluator, metric): metric.key for metric in evaluator.metrics if metric.per == per}
        told = "; ".join(f"{m.key}: {m.description}" for m in evaluator.metrics if m.per == per and m.description)
        yield rows(
            f"{evaluator.id}: by {' and '.join(per)}",
            f"Means of windows, each by the records it rests on, with their number. {told}.",
            by_class(tables, metrics, per),
            8,
            dict.fromkeys(metrics.values(), "percentunit"),
        )
    yield from coverage(evaluator, tables)
