"""The application dashboard: what is wrong with this application, and since when."""

from collections.abc import Mapping

from dashboards.judged import Judged
from dashboards.metric_panels import panels
from dashboards.overview_panels import (
    insights,
    numbers,
    open_problems,
    problem_regions,
    quality,
    quality_over_time,
    traffic,
)
from dashboards.panels import lines, section
from dashboards.sdk import DATA_SOURCE, Query, board, common, dashboard
from dashboards.sql import Tables
from dashboards.variables import variables
from dashboards.window_panels import window_panels
from evaluators.spec import Evaluator

NAME = "application"


def application(registry: Mapping[str, Evaluator], tables: Tables, judged: Mapping[str, Judged]) -> dashboard.Dashboard:
    """Numbers, problems, traffic and quality; below, a section per evaluator that asks nothing until it is opened."""
    view = (
        board.Dashboard("RAG application")
        .uid(f"ragwatch-{NAME}")
        .description("One application: problems, traffic, latency and quality, with the records each figure rests on.")
        .tags(["ragwatch"])
        .readonly()
        .refresh("1m")
        .time("now-6h", "now")
        .timezone("browser")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .annotation(problem_times(tables))
        .annotation(_pushed())
        .link(other_dashboards())
    )
    for variable in variables(tables):
        view = view.with_variable(variable)
    view = view.with_row(section("Now"))
    for panel in numbers(tables):
        view = view.with_panel(panel)
    view = view.with_panel(open_problems(tables)).with_row(section("Traffic and quality"))
    latency = "operations.latency_seconds"
    queries = [tables.quantiles(latency), tables.means({latency: "mean"})]
    says = "From question to whole answer: median, 95th and 99th percentile."
    view = view.with_panel(traffic(tables)).with_panel(lines("Latency", says, queries, "s"))
    if shares := [each.metric for each in judged.values() if each.share and not each.own]:
        view = view.with_panel(quality_over_time(shares, tables))
    if judged:
        view = view.with_panel(quality(list(judged.values()), tables))
    view = view.with_panel(insights(tables))
    for evaluator in sorted(registry.values(), key=lambda each: each.id):
        shown = panels if evaluator.combine is None else window_panels
        view = view.with_row(section(evaluator.id, shown(evaluator, tables, judged)))
    return view.build()


def problem_times(tables: Tables) -> board.AnnotationQuery:
    """Every problem's time on the graphs."""
    query = Query(problem_regions(tables), "table", "Problems")
    return board.AnnotationQuery().name("Problems").enable(True).icon_color("red").datasource(DATA_SOURCE).target(query)


def _pushed() -> board.AnnotationQuery:
    """What `drift.announce` pushes for all dashboards; off here, where the tables show the same."""
    grafana = common.DataSourceRef(type_val="grafana", uid="-- Grafana --")
    tagged = board.AnnotationTarget().type("tags").tags(["ragwatch", "problem"]).match_any(False).limit(100)
    query = board.AnnotationQuery().name("Problems, as pushed").enable(False).icon_color("orange")
    return query.datasource(grafana).target(tagged)


def other_dashboards() -> board.DashboardLink:
    """A menu of the others, for the same application and time."""
    link = board.DashboardLink("ragwatch").type(dashboard.DashboardLinkType.DASHBOARDS).tags(["ragwatch"])
    return link.as_dropdown(True).include_vars(True).keep_time(True)
