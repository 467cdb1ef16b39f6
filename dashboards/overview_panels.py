"""First panels of the application dashboard: problems, traffic, quality."""

from collections.abc import Iterator, Sequence

from ragtide.dashboards.panels import color_cells, lines, number, rows
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sdk import stat, steps, table, timeseries
from ragtide.dashboards.sql import APP, TRAFFIC, Tables
from ragtide.dashboards.variable_sql import any_in_variable, in_variable

SEVERITIES = {"critical": "red", "warning": "orange", "info": "blue"}


def numbers(tables: Tables) -> Iterator[stat.Panel]:
    """Panels of single numbers."""
    windows, problems = tables.windows([TRAFFIC]), tables.name("problems")
    here = f"{APP} AND {in_variable('environment')}"
    count = f"SELECT count() AS problems FROM {problems} WHERE state = 'open' AND opened_at <= $__toTime AND {here}"
    colours = steps((None, "green"), (1, "orange"), (5, "red"))
    yield number("Open problems", "Problems that are open now.", count, "short").thresholds(colours)
    yield number("Traces", "Traces in the time range.", tables.traces(), "short")
    latency = tables.quantile("operations.latency_seconds", 0.95)
    yield number("Latency, 95th percentile", "From question to whole answer.", latency, "s")
    errors = f"SELECT sum(sum) / nullIf(sum(scored), 0) AS errors {windows}"
    yield number("Errors", "Share of traces on which the application failed.", errors, "percentunit")
    cost = f"SELECT if(sum(scored) = 0, NULL, sum(sum)) AS cost {tables.windows(['operations.cost_usd'])}"
    yield number("Cost", "Recorded cost in the time range.", cost, "currencyUSD")
    newest = (
        f"SELECT toUnixTimestamp64Milli(toDateTime64(max(start + size_s), 3)) AS until {windows} HAVING count() > 0"
    )
    yield number(
        "Data until",
        "End of the newest closed window: when this stands still, so does ragtide.",
        newest,
        "dateTimeFromNow",
    )


def traffic(tables: Tables) -> timeseries.Panel:
    """Panels of traffic."""
    return lines("Traffic", "Traces per minute by environment.", [tables.traffic()], "short", 12).display_name(
        "${__field.labels.environment}"
    )


def quality(rule_lines: Sequence[RuleLine], tables: Tables) -> table.Panel:
    """Table of metrics with their thresholds, bad ones first."""
    panel = rows(
        "Quality",
        "Mean of every watched metric over the time range, on how many records, and how many of those it applies to; "
        "of metrics that a window has of its own, the mean of its windows, by their records. "
        "Good and bad are by the rules of the settings: of leaks one bad record is enough, of checks a few are not. "
        "Problems are raised window by window.",
        tables.overview(rule_lines),
        12,
        {"bad records": "percentunit", "of applicable": "percentunit", "of all": "percentunit"},
    )
    return color_cells(panel, "state", {"bad": "red", "good": "green", "no data": "text"})


def quality_over_time(metrics: Sequence[str], tables: Tables) -> timeseries.Panel:
    """Those of the metrics of `quality` that go from 0 to 1, as lines."""
    names = {metric: metric for metric in metrics}
    says = "Means of the watched metrics; their thresholds are in the table, each primary one has a graph below."
    return lines("Quality over time", says, [tables.means(names)], "percentunit")


def open_problems(tables: Tables) -> table.Panel:
    """Table of open problems, most severe first."""
    sql = (
        "SELECT opened_at, severity, type, metric, model, if(segment = '', '', concat(segment, ' = ', segment_value)) "
        "AS segment, description, explanation AS why, arrayStringConcat(actions, ' ') AS `what to do`, "
        "arrayStringConcat(examples, ' ') AS `example traces`, acked_by AS `taken by`, muted_by AS `muted by` "
        f"FROM {tables.name('problems')} WHERE state = 'open' AND opened_at <= $__toTime "
        f"AND {APP} AND {in_variable('environment')} AND {any_in_variable('standards', 'standard')} "
        "ORDER BY indexOf(['critical', 'warning', 'info'], severity), opened_at DESC LIMIT 100"
    )
    panel = rows("Open problems", "Problems that are open now, the worst first.", sql)
    return color_cells(panel, "severity", SEVERITIES)


def insights(tables: Tables) -> table.Panel:
    """Table of insights of the period."""
    sql = (
        "SELECT period_end, type, description, arrayStringConcat(actions, ' ') AS `what to do`, "
        f"arrayStringConcat(examples, ' ') AS `example traces` FROM {tables.name('insights')} FINAL "
        f"WHERE {APP} AND {in_variable('environment')} AND $__timeFilter(period_end) "
        "AND NOT withdrawn ORDER BY period_end DESC, insight_id LIMIT 100"
    )
    return rows("Insights", "Findings of the scheduled jobs; they never page.", sql)


def problem_regions(tables: Tables) -> str:
    """Annotation query: every problem's time on the graphs, an open one's until now."""
    return (
        "SELECT opened_at AS time, ifNull(resolved_at, now64(3)) AS timeEnd, "
        "trimRight(concat(severity, ' ', type, ': ', description, ' ', explanation)) AS text, "
        "arrayStringConcat([state, severity, metric], ',') AS tags "
        f"FROM {tables.name('problems')} WHERE state IN ('open', 'resolved') AND opened_at <= $__toTime "
        f"AND ifNull(resolved_at, now64(3)) >= $__fromTime AND {APP} AND {in_variable('environment')} "
        "ORDER BY time DESC LIMIT 500"
    )
