"""The application dashboard: its problems, traffic and quality."""

from collections.abc import Mapping

from ragtide.dashboards.layout import empty_dashboard
from ragtide.dashboards.metric_panels import panels
from ragtide.dashboards.overview_panels import (
    insights,
    numbers,
    open_problems,
    quality,
    quality_over_time,
    traffic,
)
from ragtide.dashboards.panels import lines, section
from ragtide.dashboards.questions import TITLE, questions
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sdk import board, common, dashboard
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.variables import standards
from ragtide.dashboards.window_panels import window_panels
from ragtide.evaluators.spec import Evaluator

NAME = "application"


def application(
    registry: Mapping[str, Evaluator], tables: Tables, rule_lines: Mapping[str, RuleLine], trace_url: str = ""
) -> dashboard.Dashboard:
    """Numbers, problems, traffic and quality; below, sections that query nothing until they are opened."""
    says = "One application: problems, traffic, latency and quality, with the records each figure rests on."
    view = (
        empty_dashboard(NAME, "RAG application", says, tables)
        .refresh("1m")
        .time("now-6h", "now")
        .annotation(_pushed_problems())
    )
    view = view.with_variable(standards(tables)).with_row(section("Now"))
    for panel in numbers(tables):
        view = view.with_panel(panel)
    view = view.with_panel(open_problems(tables, trace_url)).with_row(section("Traffic and quality"))
    latency = "operations.latency_seconds"
    queries = [tables.quantiles(latency), tables.means({latency: "mean"})]
    says = "From question to whole answer: median, 95th and 99th percentile."
    view = view.with_panel(traffic(tables)).with_panel(lines("Latency", says, queries, "s"))
    if shares := [each.metric for each in rule_lines.values() if each.share and not each.own]:
        view = view.with_panel(quality_over_time(shares, tables))
    if rule_lines:
        view = view.with_panel(quality(list(rule_lines.values()), tables))
    view = view.with_panel(insights(tables, trace_url))
    view = view.with_row(section(TITLE, questions(tables)))
    for evaluator in sorted(registry.values(), key=lambda each: (each.domain, each.id)):
        shown = panels if evaluator.combine is None else window_panels
        view = view.with_row(section(f"{evaluator.domain}: {evaluator.id}", shown(evaluator, tables, rule_lines)))
    return view.build()


def _pushed_problems() -> board.AnnotationQuery:
    """What `ragtide.drift.notify.delivery` pushes for all dashboards; off here, where the tables show the same."""
    grafana = common.DataSourceRef(type_val="grafana", uid="-- Grafana --")
    tagged = board.AnnotationTarget().type("tags").tags(["ragtide", "problem"]).match_any(False).limit(100)
    query = board.AnnotationQuery().name("Problems, as pushed").enable(False).icon_color("orange")
    return query.datasource(grafana).target(tagged)
