"""The fleet dashboard: every application, the worst first."""

from collections.abc import Iterator

from ragtide.dashboards.charts import states
from ragtide.dashboards.fleet_sql import HEALTH, Fleet
from ragtide.dashboards.layout import frame
from ragtide.dashboards.overview_panels import SEVERITIES
from ragtide.dashboards.panels import (
    color_cells,
    hide_columns,
    link_cells,
    number,
    rows,
    section,
    shade_cells,
    wrap_cells,
)
from ragtide.dashboards.sdk import board, dashboard, stat, statetimeline, steps, table
from ragtide.dashboards.trace_links import trace_link_sql
from ragtide.dashboards.variables import fleet_variables

NAME = "fleet"
_HEALTH_COLOURS = {"no traffic": "text", "healthy": "green", "info": "blue", "warning": "orange", "critical": "red"}
_KEPT = "${run:queryparam}&${__url_time_range}"
_PROBLEMS = f"/d/ragtide-problems?{_KEPT}"


def fleet(queries: Fleet, trace_url: str = "") -> dashboard.Dashboard:
    """Numbers of all applications, the table of them, their health over time, and who owns what is open."""
    says = "Every application, the worst first: problems, traffic, cost, quality, coverage and error budgets."
    view = frame(NAME, "Fleet", says).refresh("1m").time("now-6h", "now")
    for variable in fleet_variables(queries.tables):
        view = view.with_variable(variable)
    view = view.with_row(section("Now"))
    for panel in _numbers(queries):
        view = view.with_panel(panel)
    view = view.with_panel(_applications(queries)).with_panel(_health(queries))
    view = view.with_panel(_by_owner(queries)).with_panel(_insights(queries, trace_url))
    return view.build()


def _numbers(queries: Fleet) -> Iterator[stat.Panel]:
    none_is_good = steps((None, "green"), (1, "red"))
    says = "Applications with an open critical problem that is no symptom of another one of theirs. 0: none has one."
    problems = queries.open_problems()
    panel = number("Applications in trouble", says, problems, "short", 3, column="applications")
    yield _linked(panel).thresholds(none_is_good)
    for severity, colour in SEVERITIES.items():
        says = f"Open problems of severity {severity}, of applications and of the pipeline, without symptoms of "
        says += "others. 0: none is open."
        panel = number(f"Open, {severity}", says, problems, "short", 3, column=severity)
        yield _linked(panel).thresholds(steps((None, "green"), (1, colour)))
    says = "Traces per minute of all applications, over the time range. No data: no window has closed in it."
    operations = queries.operations()
    yield number("Traces per minute", says, operations, "short", 3, column="traces")
    says = "Recorded cost per hour of all applications, over the time range. No data: no trace had a cost."
    yield number("Cost per hour", says, operations, "currencyUSD", 3, column="cost")
    says = "Share of applicable records with a score, over the watched metrics of all applications. The table has it "
    says += "by application with its traces. No data: nothing was applicable."
    yield number("Coverage", says, queries.coverage(), "percentunit", 3)
    says = "The smallest share of an error budget that is left, of every objective and application, over its period. "
    says += "0 or less: spent. No data: no objective is set (rules.objectives)."
    yield number("Lowest error budget left", says, queries.lowest_budget(), "percentunit", 3).thresholds(
        steps((None, "red"), (0.000001, "orange"), (0.25, "green"))
    )


def _linked(panel: stat.Panel) -> stat.Panel:
    link = board.DashboardLink("Show the problems").url(_PROBLEMS)
    return panel.data_links([link])


def _applications(queries: Fleet) -> table.Panel:
    says = "Applications by health, the worst first; a row leads to its application. Within limits: the share of its "
    says += "metrics whose rule the time range keeps. Coverage: scored of applicable records. Budget left: the lowest "
    says += "of its error budgets. These three look at whole hours of long ranges. Traces: the number that the figures "
    says += "of the row rest on. No traffic: it sent traces "
    says += "in the last 7 days, but none in the time range. An empty cell means no data: nothing was recorded."
    units = dict.fromkeys(("errors", "within limits", "coverage", "budget left"), "percentunit")
    units |= {"traces per minute": "short", "latency p95": "s", "cost per hour": "currencyUSD", "traces": "short"}
    panel = rows("Applications", says, queries.applications(), 24, units | {"last problem": "dateTimeFromNow"}, 11)
    panel = color_cells(panel, "state", _HEALTH_COLOURS)
    for severity, colour in SEVERITIES.items():
        panel = shade_cells(panel, severity, (None, "text"), (1, colour))
    panel = shade_cells(panel, "within limits", (None, "orange"), (1, "green"))
    panel = shade_cells(panel, "budget left", (None, "red"), (0.000001, "orange"), (0.25, "green"))
    for metric, column in (("operations.error", "errors"), ("operations.latency_seconds", "latency p95")):
        line = next((each.line for each in queries.rule_lines if each.metric == metric), None)
        if line is not None:
            panel = shade_cells(panel, column, (None, "green"), (line, "orange"))
    for column in ("app", "state"):
        panel = link_cells(panel, column, "Open the application", "${__data.fields.link}&" + _KEPT)
    return hide_columns(panel, "environment_value", "link")


def _health(queries: Fleet) -> statetimeline.Panel:
    says = "Each application over time: the most severe open problem, without symptoms of its others, or healthy where "
    says += "traces came without one. The 40 worst applications. No data: none sent anything or had an open problem."
    named = {number: (word, _HEALTH_COLOURS[word]) for number, word in HEALTH.items()}
    return states("Health", says, queries.health(), named, "${__field.labels.application}", 9)


def _by_owner(queries: Fleet) -> table.Panel:
    says = "Open problems without their symptoms, by owner, as the routes of the settings name them. Not taken: "
    says += "not acknowledged, muted or silenced. No data: no problem is open."
    panel = rows("Open problems by owner", says, queries.by_owner(), 10, {"oldest": "dateTimeFromNow"}, 9)
    for severity, colour in SEVERITIES.items():
        panel = shade_cells(panel, severity, (None, "text"), (1, colour))
    return link_cells(panel, "owner", "Show the problems", _PROBLEMS)


def _insights(queries: Fleet, trace_url: str) -> table.Panel:
    says = "Findings of the scheduled jobs whose period overlaps the time range, the newest first; they never page. No "
    says += "data: nothing stood out."
    sql = queries.insights(trace_link_sql("app", "examples[1]", trace_url))
    panel = rows("Insights", says, sql, 14, height=9)
    panel = link_cells(panel, "example trace", "Show the trace", "${__data.fields.trace_link}")
    for column, width in (("description", 360), ("what to do", 240)):
        panel = wrap_cells(panel, column, width)
    return hide_columns(panel, "trace_link")
