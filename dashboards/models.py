"""The dashboard that compares models: quality, failures, cost and latency side by side."""

from collections.abc import Iterator

from ragtide.dashboards import classification_sql
from ragtide.dashboards.charts import bars, points
from ragtide.dashboards.layout import frame
from ragtide.dashboards.metric_panels import METRIC_URL
from ragtide.dashboards.metric_sql import OneMetric
from ragtide.dashboards.models_sql import FAILURES, Models
from ragtide.dashboards.panels import color_cells, link_cells, matrix, rows, section
from ragtide.dashboards.sdk import DATA_SOURCE, Query, barchart, board, dashboard, steps, table, xychart
from ragtide.dashboards.sql import among
from ragtide.dashboards.variables import metrics, variables
from ragtide.drift.settings import RuleSettings

NAME = "models"
_AGAINST = {"best": "green", "no clear difference": "text", "worse": "orange", "not known": "text"}
_SHARES = dict.fromkeys(("good traces", "of applicable"), "percentunit")
_FAIR = "Models may have served different questions: a difference need not be the model's."


def models(queries: Models, rules: RuleSettings, *, classifier: bool) -> dashboard.Dashboard:
    """Models at a glance, by metric, by cause of failure, and their cost and latency; leaderboards below."""
    says = "Models and prompt versions of one application compared: quality with intervals and coverage, causes of "
    says += "failure, cost and latency."
    view = frame(NAME, "Models compared", says).time("now-24h", "now").annotation(_onsets(queries))
    primary = [name for name, one in queries.metrics.items() if one.metric.primary]
    for variable in [*variables(queries.tables), metrics(queries.tables, primary)]:
        view = view.with_variable(variable)
    view = view.with_row(section("All metrics")).with_panel(_at_a_glance(queries, rules))
    view = view.with_panel(_heat_map(queries, rules)).with_row(section("The chosen metric"))
    for panel in _chosen(queries):
        view = view.with_panel(panel)
    for domain, names in queries.domains.items():
        board_of = _leaderboard(f"Leaderboard of {domain}", queries.leaderboard(among(names)), 24, 12)
        view = view.with_row(section(f"Leaderboard: {domain}", [board_of]))
    if classifier:
        view = view.with_row(section("Confusion of classes", [_confusion(queries)]))
    return view.build()


def _onsets(queries: Models) -> board.AnnotationQuery:
    onsets = OneMetric(queries.tables, queries.rule_lines, queries.metrics).onsets()
    found = board.AnnotationQuery().name("Problems").enable(False).icon_color("red")
    return found.datasource(DATA_SOURCE).target(Query(onsets, "table", "Problems"))


def _shades(rules: RuleSettings) -> tuple[tuple[float | None, str], ...]:
    """Colours of a share of good traces: by the shares of bad ones from which problems are warnings and critical."""
    return ((None, "red"), (1 - rules.severity_critical, "orange"), (1 - rules.severity_warning, "green"))


def _at_a_glance(queries: Models, rules: RuleSettings) -> table.Panel:
    says = "Each model and prompt version with its traces. By domain: the share of good traces, averaged over the "
    says += "domain's metrics with a threshold; red and orange from the shares of bad traces at which a problem is "
    says += f"critical or a warning (rules.severity_critical, rules.severity_warning). {_FAIR} An empty cell means no "
    says += "data: nothing was scored."
    units = {"traces": "short", "errors": "percentunit", "cost per trace": "currencyUSD"}
    units |= dict.fromkeys(("latency median", "latency p95"), "s")
    panel = rows("Models at a glance", says, queries.at_a_glance(), 24, units, 9)
    for domain in queries.judged_domains:
        values = [
            ("unit", "percentunit"),
            ("min", 0),
            ("max", 1),
            ("thresholds", steps(*_shades(rules)).build()),
            ("custom.cellOptions", {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}),
        ]
        panel = panel.override_by_name(
            domain, [dashboard.DynamicConfigValue(id_val=name, value=value) for name, value in values]
        )
    return panel


def _heat_map(queries: Models, rules: RuleSettings) -> table.Panel:
    says = "Share of good traces by metric and model, coloured as above: green is good whichever way the metric runs. "
    says += "A column's name has the traces that the model served; the leaderboards have the scored ones of each cell. "
    says += f"{_FAIR} An empty cell means no data: nothing was scored."
    panel = rows("Good traces by metric and model", says, queries.good_by_metric(), 24, height=14)
    values = [
        ("unit", "percentunit"),
        ("decimals", 1),
        ("thresholds", steps(*_shades(rules)).build()),
        ("custom.cellOptions", {"type": "color-background", "mode": "basic"}),
    ]
    panel = panel.override_by_field_type(
        "number", [dashboard.DynamicConfigValue(id_val=name, value=value) for name, value in values]
    )
    # The transformation names the first column by both fields; the others say that they are models.
    panel = panel.override_by_name(
        "metric\\model_name", [dashboard.DynamicConfigValue(id_val="displayName", value="metric")]
    )
    return matrix(panel, "metric", "model_name", "good", empty="null")


def _chosen(queries: Models) -> Iterator[table.Panel | barchart.Panel | xychart.Panel]:
    yield _leaderboard("Leaderboard of the chosen metric", queries.chosen(), 24, 8)
    causes = "retrieval: its contexts were bad too; generation: they were good; unknown: they were not scored; parse: "
    causes += "the evaluator could not read the trace. Of the newest 20,000 traces of the time range. No data: no "
    causes += "trace was scored, or no rule draws a line."
    colours = dict(zip(FAILURES, ("green", "purple", "orange", "text", "blue"), strict=True))
    says = f"Share of traces that pass the chosen metric, and of those that fail by cause: {causes}"
    panel = bars(
        "Passes and failures by cause", says, queries.failures(shares=True), "percentunit", "model", stacked=True
    )
    for name, colour in colours.items():
        fixed = {"mode": "fixed", "fixedColor": colour}
        panel = panel.override_by_name(name, [dashboard.DynamicConfigValue(id_val="color", value=fixed)])
    hidden = {"viz": True, "legend": True, "tooltip": False}
    yield panel.override_by_name(
        "traces",
        [
            dashboard.DynamicConfigValue(id_val="custom.hideFrom", value=hidden),
            dashboard.DynamicConfigValue(id_val="unit", value="short"),
        ],
    )
    says = f"The same in numbers of traces: {causes}"
    yield rows("Passes and failures in numbers", says, queries.failures(shares=False), 12, height=9)
    for column, unit in (("cost per trace", "currencyUSD"), ("latency", "s")):
        says = f"Share of good traces of the chosen metric over the {column}, a point per model and prompt version; "
        says += "the table of models has their traces. Better is up and to the left. No data: there is no "
        says += f"{column} or no rule draws a line."
        panel = points(f"Quality over {column}", says, queries.beside(column), "model_name")
        panel = panel.override_by_name(column, [dashboard.DynamicConfigValue(id_val="unit", value=unit)])
        yield panel.override_by_name("good traces", [dashboard.DynamicConfigValue(id_val="unit", value="percentunit")])


def _leaderboard(title: str, sql: str, width: int, height: int) -> table.Panel:
    says = "Models and prompt versions, the best first, with their scored traces and coverage. At least and at most: "
    says += "the 95 % interval of the mean; none below 5 records, or of a number of whole windows. No clear "
    says += f"difference: the interval overlaps that of the best. {_FAIR} No data: nothing was scored."
    panel = rows(title, says, sql, width, _SHARES | {"traces": "short"}, height)
    panel = color_cells(panel, "against the best", _AGAINST)
    panel = panel.override_by_regexp(
        "^(mean|at least|at most)$", [dashboard.DynamicConfigValue(id_val="decimals", value=3)]
    )
    return link_cells(
        panel, "metric", "Open the metric", f"{METRIC_URL}&var-metric=${{__data.fields.metric:percentencode}}"
    )


def _confusion(queries: Models) -> table.Panel:
    says = "Expected classes down, predicted ones across: records of the chosen models. The dashboard of "
    says += "classification has more."
    sql = classification_sql.confusion(queries.tables)
    panel = matrix(rows("Confusion of the chosen models", says, sql, 24), "expected", "predicted", "records")
    url = "/d/ragtide-classification?${app:queryparam}&${run:queryparam}&${model:queryparam}&${__url_time_range}"
    return panel.links([board.DashboardLink("Open classification").url(url)])
