"""The panels of an evaluator: from its spec, with the lines that the rules draw."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from ragtide.dashboards.charts import band, dashed
from ragtide.dashboards.panels import lines, rows, stacked_bars, with_line
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sdk import board, table, timeseries
from ragtide.dashboards.sql import Tables
from ragtide.evaluators.spec import Evaluator, Metric

# The same application, environments, models and time range.
METRIC_URL = (
    "/d/ragtide-metric?${app:queryparam}&${run:queryparam}&${environment:queryparam}&${model:queryparam}"
    "&${__url_time_range}"
)
_UNITS = {"s": "s", "usd": "currencyUSD", "share": "percentunit", "bytes": "bytes"}


def name(evaluator: Evaluator, metric: Metric) -> str:
    """`evaluator.metric`."""
    return f"{evaluator.id}.{metric.key}"


def unit(metric: Metric) -> str:
    """Grafana's unit: a metric from 0 to 1 reads as a percentage."""
    if metric.unit is not None:
        return _UNITS.get(metric.unit, "short")
    return "percentunit" if (metric.low, metric.high) == (0.0, 1.0) else "short"


def panels(
    evaluator: Evaluator, tables: Tables, rule_lines: Mapping[str, RuleLine]
) -> Iterator[timeseries.Panel | table.Panel]:
    """Panels of each primary metric, of the others by unit, of coverage and of reasons."""
    for metric in evaluator.metrics:
        if metric.primary:
            full = name(evaluator, metric)
            rule_line = rule_lines.get(full)
            if rule_line is not None and rule_line.limit is not None:
                yield bad_records(evaluator, rule_line, tables)
            mean = tables.means({full: "mean"})
            queries = [mean] if metric.bounded else [tables.quantiles(full), mean]
            yield primary(evaluator, metric, queries, rule_line)
            if evaluator.judge is not None:
                yield estimates(evaluator, metric, tables)
    for grafana_unit in sorted({unit(metric) for metric in evaluator.metrics if not metric.primary}):
        others = [metric for metric in evaluator.metrics if not metric.primary and unit(metric) == grafana_unit]
        says = "; ".join(
            f"{metric.key}: {good_side(metric, rule_lines.get(name(evaluator, metric)))}" for metric in others
        )
        means = tables.means({name(evaluator, metric): metric.key for metric in others})
        yield lines(title_of(evaluator, others), f"Means. {says}.", [means], grafana_unit, 8)
    yield from coverage(evaluator, tables)


def coverage(evaluator: Evaluator, tables: Tables) -> Iterator[timeseries.Panel | table.Panel]:
    """Panels of scored records, and of reasons for the others."""
    first = name(evaluator, next((metric for metric in evaluator.metrics if metric.primary), evaluator.metrics[0]))
    yield stacked_bars(
        f"{evaluator.id}: coverage",
        f"What became of the traces seen, by {first}: every mean speaks of the scored ones only.",
        tables.coverage(first),
        "short",
    )
    yield rows(f"{evaluator.id}: not scored, why", "Reasons of the records without a score.", tables.reasons(first), 8)


def bad_records(evaluator: Evaluator, rule_line: RuleLine, tables: Tables) -> timeseries.Panel:
    """The share of records on the wrong side of a metric's threshold, with the rule's limit."""
    says = f"{evaluator.description} Bad is {'below' if rule_line.is_min else 'above'} {rule_line.line:g}; "
    says += f"at most {rule_line.limit:.3g} of the records may be." if rule_line.limit else "no record may be."
    title = f"{rule_line.metric}: share of bad records"
    panel = lines(title, says, [tables.bad_records(rule_line)], "percentunit", 8).min(0)
    return with_line(panel, rule_line)


def primary(
    evaluator: Evaluator, metric: Metric, queries: Sequence[str], rule_line: RuleLine | None, more: str = ""
) -> timeseries.Panel:
    """A primary metric over time with its threshold; `more` ends its description."""
    says = f"{metric.description.capitalize()}. " if metric.description else ""
    says += f"{evaluator.description} {good_side(metric, rule_line).capitalize()}.{more}"
    panel = lines(name(evaluator, metric), says, queries, unit(metric), 8).data_links(
        [metric_link(name(evaluator, metric))]
    )
    if metric.bounded:
        panel = panel.min(metric.low).max(metric.high)
    return panel if rule_line is None or rule_line.limit is not None else with_line(panel, rule_line)


def estimates(evaluator: Evaluator, metric: Metric, tables: Tables) -> timeseries.Panel:
    """The estimate of a sampled metric for all traces, with its interval."""
    says = "What the judge would give on average to all traces that it applies to, estimated from the judged ones and, "
    says += "if the metric has a companion, from its scores of all traces. The band is the 95 % interval; no data: the "
    says += "judge is not sampled, or too few traces were judged. The weighted mean rests on judged traces alone."
    title = f"{name(evaluator, metric)}: estimate for all traces"
    panel = lines(title, says, [tables.estimates(name(evaluator, metric))], unit(metric), 8)
    return dashed(band(panel, "at least", "at most", "blue"), "weighted mean", "orange")


def metric_link(metric: str) -> board.DashboardLink:
    """Link of a graph's points to the dashboard of its metric."""
    return board.DashboardLink("Open the metric").url(f"{METRIC_URL}&var-metric={quote(metric, safe='')}")


def good_side(metric: Metric, rule_line: RuleLine | None) -> str:
    """The good side in words."""
    if rule_line is None:
        return f"{metric.better} is better"
    return f"{rule_line.line:g} {'or more' if rule_line.is_min else 'or less'} is good"


def title_of(evaluator: Evaluator, metrics: Sequence[Metric]) -> str:
    """Of a panel of several metrics: one or two by name, of more the first."""
    keys = [metric.key for metric in metrics]
    return f"{evaluator.id}: {' and '.join(keys if len(keys) <= 2 else [keys[0], f'{len(keys) - 1} more'])}"
