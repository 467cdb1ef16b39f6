"""The metric dashboard: one metric of one application, in every way that windows can be cut."""

from collections.abc import Iterator
from typing import TypeAlias

from ragtide.dashboards.charts import band, bars, dashed, heat_map, states
from ragtide.dashboards.expected_sql import baselines, expected
from ragtide.dashboards.layout import frame
from ragtide.dashboards.metric_sql import OneMetric
from ragtide.dashboards.overview_panels import SEVERITIES
from ragtide.dashboards.panels import (
    color_cells,
    hide_columns,
    lines,
    link_cells,
    number,
    rows,
    section,
    stacked_bars,
    wrap_cells,
)
from ragtide.dashboards.people_sql import people_by_day, people_in_range
from ragtide.dashboards.sdk import (
    DATA_SOURCE,
    Query,
    barchart,
    board,
    dashboard,
    heatmap,
    stat,
    statetimeline,
    table,
    timeseries,
)
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.trace_links import trace_link_sql
from ragtide.dashboards.variables import metrics, segments, variables

NAME = "metric"
_VERDICTS = {0: ("no records", "text"), 1: ("good", "green"), 2: ("bad", "red")}
_SHARES = dict.fromkeys(("bad records", "limit of bad records", "of applicable", "of all"), "percentunit")
_INTERVAL = (
    "At least and at most: the 95 % interval of the mean; none below 5 records, or of a number of whole windows."
)
_Panel: TypeAlias = timeseries.Panel | table.Panel | heatmap.Panel | barchart.Panel | statetimeline.Panel


def metric(queries: OneMetric, trace_url: str = "") -> dashboard.Dashboard:
    """Figures, the course of the metric with its records, its detector, segments, versions, verdicts and traces."""
    tables = queries.tables
    says = "One metric: its course and interval, on how many traces it rests, what its detector expects, and where it "
    says += "is bad: by segment, model, prompt version and trace."
    view = frame(NAME, "Metric", says).refresh("1m").time("now-24h", "now").annotation(_onsets(queries))
    primary = [name for name, one in queries.metrics.items() if one.metric.primary]
    chosen = [*variables(tables), metrics(tables, primary), segments(tables)]
    for variable in chosen:
        view = view.with_variable(variable)
    view = view.with_row(section("Now"))
    for figure in _numbers(queries):
        view = view.with_panel(figure)
    view = view.with_panel(_figures(queries)).with_row(section("Over time"))
    for panel in _over_time(queries, tables):
        view = view.with_panel(panel)
    view = view.with_row(section("Where")).with_panel(_worst(queries, trace_url))
    for panel in _where(queries):
        view = view.with_panel(panel)
    view = view.with_row(section("People's verdicts"))
    for panel in _people(tables):
        view = view.with_panel(panel)
    view = view.with_row(section("Rules and problems"))
    for panel in _judged(queries):
        view = view.with_panel(panel)
    return view.build()


def _onsets(queries: OneMetric) -> board.AnnotationQuery:
    query = Query(queries.onsets(), "table", "Problems")
    found = board.AnnotationQuery().name("Problems").enable(True).icon_color("red")
    return found.datasource(DATA_SOURCE).target(query)


def _numbers(queries: OneMetric) -> Iterator[stat.Panel]:
    says = "Mean over the scored traces of the time range; of a metric of whole windows, their mean by records."
    yield number("Mean", says, queries.figure("mean"), "short", 6)
    says = "Scored traces of the time range: what the mean rests on."
    yield number("Scored traces", says, queries.figure("traces"), "short", 6)
    says = "Scored of the applicable traces. No data: the evaluator applied to none."
    yield number("Coverage", says, queries.figure("coverage"), "percentunit", 6)
    says = "Share of the scored traces on the bad side of the metric's line. No data: no rule draws a line."
    yield number("Bad traces", says, queries.figure("bad"), "percentunit", 6)


def _figures(queries: OneMetric) -> table.Panel:
    says = f"The time range in figures, the records behind them, and what the metric measures. {_INTERVAL} An empty "
    says += "cell means no data: it does not apply to this metric."
    panel = rows("In figures", says, queries.figures(), 24, _SHARES | {"scored": "short"}, 4)
    panel = wrap_cells(panel, "measures", 320)
    return panel.override_by_regexp(
        "^(mean|at least|at most|p5|median|p95|line)$",
        [dashboard.DynamicConfigValue(id_val="decimals", value=3)],
    )


def _over_time(queries: OneMetric, tables: Tables) -> Iterator[_Panel]:
    says = "Mean with its 95 % interval, and the limit where the rule judges means. A gap means no data: nothing was "
    says += "scored then. Below: on how many traces it rests."
    panel = lines("Mean and interval", says, [queries.over_time()], "short", 12)
    yield dashed(band(panel, "at least", "at most", "blue"), "limit", "red")
    says = "What the change detector expects, against what there is: the mean, the share of bad records, or the share "
    says += "above the usual median; the table of baselines says which. The band holds 95 % of usual windows. No data: "
    says += "no baseline was learned yet (it takes a day of windows), or the metric is not watched."
    panel = lines("Expected against now", says, [expected(tables)], "short", 12)
    yield dashed(band(panel, "expected from", "expected to", "green"), "expected", "green")
    says = "What became of the traces seen: every mean speaks of the scored ones only. Not evaluated: sampled out, or "
    says += "not selected."
    yield stacked_bars("Traces behind the mean", says, queries.coverage(), "short", 12)
    says = "Share of scored traces on the bad side of the line, and the limit where the rule judges records. No data: "
    says += "no rule draws a line."
    yield dashed(lines("Bad traces", says, [queries.bad_records()], "percentunit", 12).min(0), "limit", "red")
    says = "Half of the traces lie between p25 and p75, nine of ten between p5 and p95. Read from the bins of windows: "
    says += "exact to a hundredth of the range, or to 1 %."
    panel = lines("Quantiles", says, [queries.quantiles()], "short", 12)
    yield band(panel, "p25", "p75", "blue")
    says = "Traces by value over time: darker is more. Rows are named by their lower end."
    yield heat_map("Scores", says, queries.heat_map(), "short", "${__field.labels.label}", 12)


def _worst(queries: OneMetric, trace_url: str) -> table.Panel:
    says = "Traces of the time range with the worst scores, the newest of equal ones first. No data: no trace was "
    says += "scored, the metric is one of whole windows, or scores are older than retention.traces_days."
    sql = queries.worst_traces(trace_link_sql("app", "trace_id", trace_url))
    panel = rows("Worst traces", says, sql, 12, {"time": "dateTimeAsIso"}, 10)
    panel = link_cells(panel, "trace", "Show the trace", "${__data.fields.trace_link}")
    return hide_columns(panel, "trace_link")


def _where(queries: OneMetric) -> Iterator[_Panel]:
    says = "Share of traces by value, in the time range and in the 7 days before it; each row's number of traces is in "
    says += "the tooltip."
    panel = bars("Distribution", says, queries.distribution(), "percentunit", "value")
    yield panel.override_by_regexp(
        "^traces",
        [
            dashboard.DynamicConfigValue(id_val="unit", value="short"),
            dashboard.DynamicConfigValue(
                id_val="custom.hideFrom", value={"viz": True, "legend": True, "tooltip": False}
            ),
        ],
    )
    says = "Mean by value of the chosen segment, of the 10 with the most traces. No data: windows are not split by "
    says += "segments (windows.segments), or the metric is not a primary one."
    yield lines("By segment", says, [queries.by_segment()], "short", 12).display_name("${__field.labels.name}")
    says = f"Each value of the chosen segment over the time range, with its traces. {_INTERVAL} No data: as beside."
    yield rows("Segments in figures", says, queries.segment_rows(), 12, _SHARES)
    says = "Mean by model and prompt version, of the 10 with the most traces."
    yield lines("By model and prompt version", says, [queries.by_version()], "short", 12).display_name(
        "${__field.labels.name}"
    )
    says = f"Each model, prompt version and version of the evaluator over the time range. {_INTERVAL}"
    yield rows("Versions in figures", says, queries.version_rows(), 12, _SHARES)


def _people(tables: Tables) -> Iterator[_Panel]:
    says = "What people would say of all answers that the metric scores, estimated from labels of a sample (ragtide "
    says += "labels sample) and the metric's scores of the others: the share of thumbs up, and the mean of people's "
    says += "scores. At least and at most: the 95 % interval; none below 50 labels. Labelled of the sample: about "
    says += "100 % if people labelled all that was drawn; if far less, the estimate may be biased. No data: no such "
    says += "label."
    units = {"labelled of the sample": "percentunit"}
    yield rows("What people would say", says, people_in_range(tables), 12, units)
    says = "Share of all answers that people would give a thumbs up, by day of the answer (UTC), with its 95 % "
    says += "interval. No data: no label of a sample. No band: fewer than 50 labels that day, or all alike."
    panel = lines("What people would say, by day", says, [people_by_day(tables)], "percentunit", 12)
    yield band(panel, "at least", "at most", "blue")


def _judged(queries: OneMetric) -> Iterator[_Panel]:
    says = "What each rule found of the windows, by environment, model and segment: the 10 with the most bad ones. No "
    says += "data: no rule judges the metric, or too few traces came for a verdict."
    yield states("Verdicts", says, queries.verdicts(), _VERDICTS, "${__field.labels.rule}", 8)
    says = "Problems of the metric that were open in the time range. No data: there was none."
    panel = rows("Problems of the metric", says, queries.problems(), 16, height=8)
    panel = color_cells(color_cells(panel, "severity", SEVERITIES), "state", {"open": "red", "resolved": "green"})
    for column, width in (("description", 380), ("why", 260)):
        panel = wrap_cells(panel, column, width)
    url = "/d/ragtide-problems?${app:queryparam}&var-problem=${__data.fields.problem_id}&${__url_time_range}"
    yield link_cells(panel, "problem_id", "Show the problem", url)
    says = "Baselines of the detector: what is watched, and its level over the hours of a week. No data: none was "
    says += "learned yet, or the metric is not watched."
    yield rows("Baselines", says, baselines(queries.tables), 8, {"baseline of": "dateTimeAsIso"})
