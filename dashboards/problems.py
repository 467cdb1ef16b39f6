"""The dashboard of problems and insights: what is open, how it went, and what to do."""

from collections.abc import Iterator, Mapping, Sequence

from ragtide.dashboards.columns import widths
from ragtide.dashboards.layout import frame
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
from ragtide.dashboards.problems_sql import SEVERITIES, ProblemQueries
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.runbook_links import PANEL_FIELD, runbook_path
from ragtide.dashboards.sdk import (
    DATA_SOURCE,
    Query,
    board,
    common,
    dashboard,
    options,
    stat,
    statetimeline,
    steps,
    table,
    timeseries,
)
from ragtide.dashboards.settings import DEFAULT_PREFIX
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.variables import variables

NAME = "problems"
_RANGE = "${__url_time_range}"
_FIELD = "${{__data.fields.{}:percentencode}}".format
_APP = f"/d/ragtide-application?var-app={_FIELD('application')}&{_RANGE}"
_METRIC = f"/d/ragtide-metric?var-app={_FIELD('application')}&var-metric={_FIELD('metric')}&{_RANGE}"
_KEPT = "&".join(
    f"${{{name}:queryparam}}" for name in ("app", "environment", "state", "severity", "type", "kind", "standard")
)
_PROBLEM = f"/d/ragtide-problems?{_KEPT}&var-problem={_FIELD('problem_id')}&{_RANGE}"
_PARENT = f"/d/ragtide-problems?{_KEPT}&var-problem=${{__value.raw}}&{_RANGE}"
_BY_LABEL = f"/d/ragtide-problems?{_KEPT}&var-problem=${{__field.labels.id}}&{_RANGE}"
_RUNBOOK = runbook_path(DEFAULT_PREFIX).replace(PANEL_FIELD, _FIELD("runbook")) + f"&{_RANGE}"
_COLOURS = {"critical": "red", "warning": "orange", "info": "blue"}
_STATES = {"open": "red", "pending": "orange", "resolved": "green"}
_TIMELINE = {0: ("pending", "text"), 1: ("info", "blue"), 2: ("warning", "orange"), 3: ("critical", "red")}
_NONE = "No data: no problem matches."
_CHOSEN = "Of the problem in the variable Problem, by its id or the id's start; without one, of the worst that matches."


def problems(tables: Tables, rule_lines: Mapping[str, RuleLine], trace_url: str = "") -> dashboard.Dashboard:
    """Build the dashboard of problems of every application."""
    ask = ProblemQueries(tables, rule_lines, trace_url)
    says = "Problems of all applications: open and past ones, the life and evidence of each, insights, notifications."
    view = frame(NAME, "Problems and insights", says).time("now-7d", "now")
    for variable in _variables(tables, ask):
        view = view.with_variable(variable)
    view = view.with_row(section("Problems"))
    for panel in _overview(ask):
        view = view.with_panel(panel)
    view = view.with_row(section("The chosen problem"))
    for chosen_panel in _chosen(ask):
        view = view.with_panel(chosen_panel)
    view = view.with_row(section("How fast"))
    for time_panel in _times(ask):
        view = view.with_panel(time_panel)
    view = view.with_row(section("Insights and notifications"))
    for other_panel in _others(ask):
        view = view.with_panel(other_panel)
    return view.build()


def _variables(
    tables: Tables, ask: ProblemQueries
) -> Iterator[board.QueryVariable | board.CustomVariable | board.DatasourceVariable | board.TextBoxVariable]:
    yield variables(tables)[0]
    yield _several("app", "Application", ask.choices("app"))
    yield _several("environment", "Environment", ask.choices("environment"))
    yield _choices("state", "State", ("open", "pending", "resolved"))
    yield _choices("severity", "Severity", SEVERITIES[::-1])
    yield _several("type", "Type", ask.choices("type"))
    yield _several("kind", "Found by", ask.choices("kind", "kinds"))
    yield _several("standard", "Standard", ask.choices("standard", "standards"))
    empty = dashboard.VariableOption(selected=True, text="", value="")
    yield board.TextBoxVariable("problem").label("Problem").current(empty).options([empty])


_ALL = dashboard.VariableOption(selected=True, text=["All"], value=["$__all"])


def _several(name: str, label: str, sql: str) -> board.QueryVariable:
    return (
        board.QueryVariable(name)
        .label(label)
        .datasource(DATA_SOURCE)
        .query({"editorType": "sql", "rawSql": sql, "refId": f"variable-{name}"})
        .definition(sql)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.DISABLED)
        .multi(True)
        .include_all(True)
        .current(_ALL)
    )


def _choices(name: str, label: str, values: Sequence[str]) -> board.CustomVariable:
    choices = [dashboard.VariableOption(selected=False, text=one, value=one) for one in values]
    return (
        board.CustomVariable(name)
        .label(label)
        .values(",".join(values))
        .options(choices)
        .multi(True)
        .include_all(True)
        .current(_ALL)
    )


def _overview(ask: ProblemQueries) -> Iterator[stat.Panel | table.Panel | statetimeline.Panel]:
    counts, times = ask.open_counts(), ask.median_times()
    for severity in reversed(SEVERITIES):
        says = f"Problems of severity {severity} that are open at the end of the time range, without symptoms of "
        says += "others. 0 if there is none."
        panel = number(f"Open, {severity}", says, counts, "short", column=severity)
        yield panel.thresholds(steps((None, "green"), (1, _COLOURS[severity])))
    says = "Open problems, without symptoms of others, that nobody has acknowledged, accepted, muted or silenced. "
    says += "0: none is open."
    panel = number("Unattended", says, counts, "short", column="unattended")
    yield panel.thresholds(steps((None, "green"), (1, "orange")))
    says = "Median time from the first bad trace to the opened problem, of those that opened in the time range. "
    yield number("Time to detect", f"{says}No data: none has opened.", times, "s", column="detect")
    says = "Median time from opening to resolution, of problems that opened in the time range and are resolved. "
    yield number("Time to resolve", f"{says}No data: none is resolved.", times, "s", column="resolve")
    says = (
        "Problems whose life overlaps the time range, open ones first, the most severe first, those of the system "
        "itself among them. The id shows one below. Symptom of: the problem that explains it, in the same episode. "
        f"{_NONE}"
    )
    listed = rows("Problems", says, ask.listed(), 24, {"lasted": "s"}, height=10).no_value("no problem")
    listed = color_cells(color_cells(listed, "severity", _COLOURS), "state", _STATES)
    listed = link_cells(listed, "application", "Show the application", _APP)
    listed = link_cells(listed, "metric", "Show the metric over time", _METRIC)
    listed = link_cells(listed, "found by", "Open the runbook", _RUNBOOK)
    listed = link_cells(listed, "problem_id", "Show this problem", _PROBLEM)
    listed = link_cells(listed, "symptom of", "Show the problem that explains it", _PARENT)
    listed = widths(listed, {"severity": 85, "state": 80, "opened": 150, "application": 110, "type": 100, "lasted": 80})
    yield hide_columns(wrap_cells(wrap_cells(listed, "description", 320), "handled", 170), "episode", "runbook")
    yield _timeline(ask)


def _timeline(ask: ProblemQueries) -> statetimeline.Panel:
    named = {
        str(code): dashboard.ValueMappingResult(text=word, color=colour, index=code)
        for code, (word, colour) in _TIMELINE.items()
    }
    return (
        statetimeline.Panel()
        .title("Life cycle")
        .description(
            "When each problem was pending and open, by its present severity: the newest 25, open "
            "ones first. A gap: it "
            f"was not there, or resolved. {_NONE}"
        )
        .datasource(DATA_SOURCE)
        .span(24)
        .height(9)
        .unit("none")
        .no_value("no problem")
        .mappings([dashboard.ValueMap(options=named)])
        .color_scheme(board.FieldColor().mode(dashboard.FieldColorModeId.FIXED).fixed_color("text"))
        .display_name("${__field.labels.problem}")
        .data_links([board.DashboardLink("Show this problem").url(_BY_LABEL)])
        .show_value(common.VisibilityMode.NEVER)
        .merge_values(True)
        .row_height(0.8)
        .fill_opacity(80)
        .legend(options.VizLegendOptions().show_legend(True).placement(common.LegendPlacement.BOTTOM))
        .with_target(Query(ask.life_cycle()))
    )


def _chosen(ask: ProblemQueries) -> Iterator[table.Panel | timeseries.Panel]:
    says = f"The message, the likely cause and the steps to take. {_CHOSEN} {_NONE}"
    yield wrap_cells(
        rows("What happened, and what to do", says, ask.what_happened(), 16, height=9), "text", 720
    ).no_value("no problem")
    says = f"What it is, when it began, opened and resolved, and who has dealt with it. {_CHOSEN} {_NONE}"
    yield wrap_cells(rows("Facts", says, ask.facts(), 8, height=9), "value", 260).no_value("no problem")
    says = (
        "The value that the problem was judged by, its threshold and its baseline, and as bars the records behind "
        f"each point. {_CHOSEN} No data: the problem has no metric, or there are no windows in the time range."
    )
    figure = lines("Its metric", says, [ask.figure()], "short", 16).with_target(Query(ask.records(), ref="B"))
    yield _styled(figure)
    says = f"The figures behind the message: value, baseline, threshold, sample size and others. {_CHOSEN} {_NONE}"
    yield wrap_cells(rows("Evidence", says, ask.evidence(), 8), "value", 260).no_value("no figures")
    says = f"Everything that jobs and people did, the newest first, over all episodes. {_CHOSEN} {_NONE}"
    events = color_cells(rows("Event log", says, ask.events(), 16), "severity", _COLOURS).no_value("no problem")
    yield wrap_cells(events, "message", 380)
    says = f"Traces to look at, the worst first. {_CHOSEN} No data: the problem has no examples."
    examples = rows("Example traces", says, ask.examples(), 8).no_value("no examples")
    yield hide_columns(link_cells(examples, "trace", "Show this trace", "${__data.fields.trace_link}"), "trace_link")
    says = f"Figures of the likely cause: where the change is, since which version, at which stage. {_CHOSEN} "
    says += "No data: no cause has been found."
    yield wrap_cells(rows("Likely cause in detail", says, ask.cause(), 24, height=7), "value", 700).no_value(
        "no cause found"
    )


def _styled(panel: timeseries.Panel) -> timeseries.Panel:
    """Threshold and baseline as dashed lines, records as bars on an axis of their own."""
    dashes = {"fill": "dash", "dash": [8, 6]}
    for series, colour in (("threshold", "red"), ("baseline", "text")):
        style = [
            ("custom.lineStyle", dashes),
            ("custom.showPoints", "never"),
            ("color", {"mode": "fixed", "fixedColor": colour}),
        ]
        panel = panel.override_by_name(series, [dashboard.DynamicConfigValue(id_val=k, value=v) for k, v in style])
    bars = [
        ("custom.drawStyle", "bars"),
        ("custom.fillOpacity", 20),
        ("custom.lineWidth", 0),
        ("custom.axisPlacement", "right"),
        ("custom.axisLabel", "records"),
        ("unit", "short"),
        ("min", 0),
        ("color", {"mode": "fixed", "fixedColor": "text"}),
    ]
    return panel.override_by_name("records", [dashboard.DynamicConfigValue(id_val=k, value=v) for k, v in bars])


def _times(ask: ProblemQueries) -> Iterator[table.Panel | timeseries.Panel]:
    says = (
        "Of problems that opened in the time range: from the first bad trace to opening, and from opening to "
        "resolution, each with the number it rests on. No data: none has opened."
    )
    named = {f"{which}, {level}": "s" for which in ("detect", "resolve") for level in ("median", "90 %")}
    durations = rows("Time to detect and to resolve", says, ask.durations(), 14, named).no_value("no problem")
    yield color_cells(durations, "severity", _COLOURS)
    says = "Problems that opened, and that resolved, per day in UTC. No data: none did."
    bars = stacked_bars("Opened and resolved per day", says, ask.per_day(), "short", 10).no_value("no problem")
    for series, colour in (("opened", "orange"), ("resolved", "green")):
        fixed = dashboard.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})
        bars = bars.override_by_name(series, [fixed])
    yield bars


def _others(ask: ProblemQueries) -> Iterator[table.Panel]:
    says = (
        "Findings of the scheduled jobs whose period overlaps the time range; they never page. No data: there are none."
    )
    feed = rows("Insights", says, ask.insights(), 24, height=10).no_value("no insights")
    feed = link_cells(feed, "worst trace", "Show this trace", "${__data.fields.trace_link}")
    feed = link_cells(feed, "application", "Show the application", _APP)
    yield hide_columns(wrap_cells(wrap_cells(feed, "description", 420), "what to do", 300), "trace_link")
    says = (
        "Messages about problems by receiver and state: pending ones are tried again, refused ones are not. No data: "
        "no message was written in the time range, or grafana.url is not set."
    )
    sent = rows("Notifications", says, ask.notifications(), 24, height=6).no_value("no messages")
    sent = color_cells(sent, "state", {"pending": "orange", "refused": "red", "sent": "green"})
    yield wrap_cells(sent, "last error", 400)
