"""The frame of every dashboard: variables, problems on the graphs, and links to the others."""

from ragtide.dashboards.overview_panels import problem_regions
from ragtide.dashboards.sdk import DATA_SOURCE, Query, board, dashboard
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.variables import variables


def frame(name: str, title: str, description: str) -> board.Dashboard:
    """A dashboard of the last 24 hours with links to the others, without variables and panels."""
    return (
        board.Dashboard(title)
        .uid(f"ragtide-{name}")
        .description(description)
        .tags(["ragtide"])
        .readonly()
        .refresh("5m")
        .time("now-24h", "now")
        .timezone("browser")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .link(_other_dashboards())
    )


def empty_dashboard(name: str, title: str, description: str, tables: Tables) -> board.Dashboard:
    """The frame with the variables of an application and its problems on the graphs; without panels."""
    view = frame(name, title, description).annotation(_problem_times(tables))
    for variable in variables(tables):
        view = view.with_variable(variable)
    return view


def _problem_times(tables: Tables) -> board.AnnotationQuery:
    """Every problem's time on the graphs."""
    query = Query(problem_regions(tables), "table", "Problems")
    return board.AnnotationQuery().name("Problems").enable(True).icon_color("red").datasource(DATA_SOURCE).target(query)


def _other_dashboards() -> board.DashboardLink:
    """A menu of the others, for the same application and time."""
    link = board.DashboardLink("ragtide").type(dashboard.DashboardLinkType.DASHBOARDS).tags(["ragtide"])
    return link.as_dropdown(True).include_vars(True).keep_time(True)
