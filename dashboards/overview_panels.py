"""First panels of the application dashboard: problems, traffic, quality."""

from collections.abc import Iterator, Mapping, Sequence

from ragtide.dashboards.metric_panels import METRIC_URL
from ragtide.dashboards.panels import color_cells, hide_columns, lines, link_cells, number, rows, wrap_cells
from ragtide.dashboards.quality_sql import overview
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sdk import stat, steps, table, timeseries
from ragtide.dashboards.sql import APP, OPEN_PROBLEMS, TRAFFIC, Tables
from ragtide.dashboards.trace_links import trace_link_sql
from ragtide.dashboards.variable_sql import any_in_variable, in_variable

# The same dashboard; Grafana completes a path.
_SINCE = "/d/${__dashboard.uid}?${app:queryparam}&${run:queryparam}&from=${__data.fields.before_ms}&to=now"
SEVERITIES = {"critical": "red", "warning": "orange", "info": "blue"}


def numbers(tables: Tables) -> Iterator[stat.Panel]:
    """Panels of single numbers."""
    windows = tables.whole_range([TRAFFIC])
    count = f"SELECT count() AS problems FROM {tables.name('problems')} WHERE {OPEN_PROBLEMS} AND {tables.is_parent()}"
    colours = steps((None, "green"), (1, "orange"), (5, "red"))
    yield number(
        "Open problems",
        "Problems of the application and of the pipeline that are open now, without the symptoms of others.",
        count,
        "short",
    ).thresholds(colours)
    yield number("Traces", "Traces in the time range.", tables.traces(), "short")
    latency = tables.quantile("operations.latency_seconds", 0.95)
    yield number("Latency, 95th percentile", "From question to whole answer.", latency, "s")
    errors = f"SELECT sum(sum) / nullIf(sum(scored), 0) AS errors {windows}"
    yield number("Errors", "Share of traces on which the application failed.", errors, "percentunit")
    cost = f"SELECT if(sum(scored) = 0, NULL, sum(sum)) AS cost {tables.whole_range(['operations.cost_usd'])}"
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
        "Every metric with a rule over the time range: its mean or its share of bad records against the limit, and the "
        "records behind it. A metric with an open problem is a problem, whatever its figures say. Rules judge window "
        "by window. For metrics with one number per window, the mean weights windows by their records.",
        overview(tables, rule_lines),
        12,
        dict.fromkeys(("bad records", "limit of bad records", "of applicable", "of all"), "percentunit"),
    )
    panel = link_cells(
        panel, "metric", "Open the metric", f"{METRIC_URL}&var-metric=${{__data.fields.metric:percentencode}}"
    )
    return color_cells(panel, "state", {"problem": "red", "bad": "orange", "good": "green", "no data": "text"})


def quality_over_time(metrics: Sequence[str], tables: Tables) -> timeseries.Panel:
    """Those of the metrics of `quality` that go from 0 to 1, as lines."""
    names = {metric: metric for metric in metrics}
    says = "Means of the watched metrics; their thresholds are in the table, each primary one has a graph below."
    return lines("Quality over time", says, [tables.means(names)], "percentunit")


def open_problems(tables: Tables, trace_url: str) -> table.Panel:
    """Table of open problems, most severe first."""
    sql = (
        "SELECT severity, opened_at AS opened, description, symptoms, metric, model, "
        "if(segment = '', '', concat(segment, ' = ', segment_value)) AS segment, type, explanation AS why, "
        "arrayStringConcat(actions, ' ') AS `what to do`, examples[1] AS `worst trace`, "
        "length(examples) AS `number of examples`, "
        "problem_id, acked_by AS `taken by`, muted_by AS `muted by`, "
        f"{trace_link_sql('app', 'examples[1]', trace_url)} AS trace_link, "
        "toUnixTimestamp64Milli(opened_at) - 1800000 AS before_ms "
        f"FROM {tables.name('problems')} LEFT JOIN (SELECT parent_id AS problem_id, parent_episode AS episode, "
        f"count() AS symptoms FROM {tables.name('problem_groups')} FINAL WHERE parent_id != '' "
        "GROUP BY problem_id, episode) AS explained USING (problem_id, episode) "
        f"WHERE {OPEN_PROBLEMS} AND {tables.is_parent()} AND {any_in_variable('standards', 'standard')} "
        "ORDER BY indexOf(['critical', 'warning', 'info'], severity), opened_at DESC LIMIT 100"
    )
    says = "Problems of the application and of the pipeline that are open now, the worst first, with the number of "
    says += "problems that each explains. "
    says += "`ragtide problems show PROBLEM_ID` has the whole of one."
    panel = rows("Open problems", says, sql, 24, height=8).no_value("no open problem")
    panel = color_cells(panel, "severity", SEVERITIES)
    panel = link_cells(panel, "opened", "Show the time since half an hour before", _SINCE)
    return _linked(panel, {"description": 420, "why": 300, "what to do": 300})


def insights(tables: Tables, trace_url: str) -> table.Panel:
    """Table of insights whose period overlaps the time range."""
    sql = (
        "SELECT period_start AS since, period_end AS until, type, description, "
        "arrayStringConcat(actions, ' ') AS `what to do`, examples[1] AS `worst trace`, "
        "length(examples) AS `number of examples`, "
        f"{trace_link_sql('app', 'examples[1]', trace_url)} AS trace_link FROM {tables.name('insights')} FINAL "
        f"WHERE {APP} AND {in_variable('environment')} AND period_start <= $__toTime AND period_end >= $__fromTime "
        "AND NOT withdrawn ORDER BY period_end DESC, insight_id LIMIT 100"
    )
    says = "Findings of the scheduled jobs whose period overlaps the time range; they never page."
    return _linked(rows("Insights", says, sql, 24, height=10), {"description": 420, "what to do": 300})


def _linked(panel: table.Panel, wrapped: Mapping[str, int]) -> table.Panel:
    """Link the worst trace, and show these long texts whole, in columns of that width."""
    panel = link_cells(panel, "worst trace", "Show the texts of the trace", "${__data.fields.trace_link}")
    for column, width in wrapped.items():
        panel = wrap_cells(panel, column, width)
    return hide_columns(panel, "trace_link", "before_ms")


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
