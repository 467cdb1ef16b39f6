"""The dashboard of one trace: its texts coloured by evidence, its scores, and the ways out of it."""

from collections.abc import Iterator, Mapping

from ragtide.dashboards.columns import color_above, color_rows, decimals, widths
from ragtide.dashboards.layout import frame
from ragtide.dashboards.panels import color_cells, hide_columns, link_cells, rows, section, wrap_cells
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sdk import DATA_SOURCE, board, dashboard, table
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.trace_evidence_sql import LONGEST_PIECE, VERDICTS, Field
from ragtide.dashboards.trace_links import TRACE
from ragtide.dashboards.trace_sql import NEWEST, TraceQueries
from ragtide.dashboards.variables import one_of, variables
from ragtide.evaluators.spec import Evaluator

NAME = TRACE
_RANGE = "${__url_time_range}"
_CHOICE = "${app:queryparam}&${run:queryparam}"
_SAME = f"/d/ragtide-trace?{_CHOICE}&var-trace_id=${{__data.fields.trace_id:percentencode}}&{_RANGE}"
_METRIC = f"/d/ragtide-metric?{_CHOICE}&var-metric=${{__data.fields.metric:percentencode}}&{_RANGE}"
_PROBLEM = (
    "/d/ragtide-problems?var-app=${__data.fields.app:percentencode}"
    f"&var-problem=${{__data.fields.problem_id:percentencode}}&{_RANGE}"
)
_NO_TEXT = "No text: none is stored (privacy.store_texts), its retention has ended, or there is no such trace."
_LEGEND = (
    "The colour is the worst verdict of the evidence that covers a piece. Red: the place and the record fail the "
    "threshold. Orange: only the place does. Green: it passes. Blue: an evaluator points at it without a verdict. "
    f"Masked texts stay whole, because offsets do not fit them. A piece shows its first {LONGEST_PIECE:,} characters."
)
_PASS = {
    "fail": "red",
    "evaluator failed": "orange",
    "pass": "green",
    "no threshold": "text",
    "not applicable": "text",
    "not in the sample": "text",
}
_STATES = {"open": "red", "pending": "orange", "resolved": "green"}
_SEVERITIES = {"critical": "red", "warning": "orange", "info": "blue"}


def trace(
    registry: Mapping[str, Evaluator],
    tables: Tables,
    rule_lines: Mapping[str, RuleLine],
    links: Mapping[str, str],
) -> dashboard.Dashboard:
    """Build the dashboard. `links` are URL templates of other tools by name."""
    ask = TraceQueries(tables, registry, rule_lines)
    says = "One trace: question, chunks and answer with evidence in colour, scores, versions, labels and problems."
    view = frame(NAME, "Trace", says).time("now-3h", "now")
    for variable in variables(tables)[:-1]:
        view = view.with_variable(variable)
    view = view.with_variable(
        one_of("errors", "Show", {"all traces": "all", "traces with errors": "only"}, "all traces")
    )
    view = view.with_variable(_worst(ask)).with_variable(_trace_id())
    view = view.with_row(section("Trace"))
    for panel in _trace(ask):
        view = view.with_panel(panel)
    view = view.with_row(section("Chunks and details"))
    for panel in _details(ask, links):
        view = view.with_panel(panel)
    return view.build()


def _worst(ask: TraceQueries) -> board.QueryVariable:
    sql = ask.sortable()
    newest = dashboard.VariableOption(selected=True, text="newest first", value=NEWEST)
    return (
        board.QueryVariable("worst")
        .label("Worst by")
        .datasource(DATA_SOURCE)
        .query({"editorType": "sql", "rawSql": sql, "refId": "variable-worst"})
        .definition(sql)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.DISABLED)
        .current(newest)
    )


def _trace_id() -> board.TextBoxVariable:
    empty = dashboard.VariableOption(selected=True, text="", value="")
    return board.TextBoxVariable("trace_id").label("Trace id").current(empty).options([empty])


def _trace(ask: TraceQueries) -> Iterator[table.Panel]:
    says = (
        "The chosen trace, and without a trace id the 50 newest ones, or the worst by the chosen metric. The panels "
        "below show the chosen trace, else the newest. Failed metrics are those of rules, out of the metrics that "
        "were judged. No data: no trace has this id up to the end of the time range, or none is in the range."
    )
    choices = rows("Traces", says, ask.choices(), 24, {"latency": "s", "cost": "currencyUSD"}, height=7)
    choices = link_cells(choices, "trace_id", "Show this trace", _SAME).no_value("no such trace")
    choices = color_above(choices, "failed metrics", 1, good="green")
    yield wrap_cells(choices, "question", 360)
    yield _text(ask, "question", "Question", 24, 6)
    yield _text(ask, "answer", "Answer", 24, 11)
    says = (
        "Every metric of the trace against its threshold: that of the rules, else the metric's own. Evaluators "
        "without a value say why. No data: no evaluator has stored a row, or there is no such trace."
    )
    scores = color_cells(rows("Scores", says, ask.scores(), 24, height=10), "verdict", _PASS)
    scores = widths(scores.no_value("no scores"), {"verdict": 130, "value": 90, "threshold": 100})
    yield link_cells(scores, "metric", "Show this metric over time", _METRIC)


def _details(ask: TraceQueries, links: Mapping[str, str]) -> Iterator[table.Panel]:
    yield _text(ask, "contexts", "Retrieved chunks", 24, 10)
    says = (
        "Every place that an evaluator points at, by position: characters of the text, or numbers of list items. It "
        "never quotes. Personal data is here by kind and position only. No data: no evaluator points at anything."
    )
    places = color_cells(rows("Evidence", says, ask.evidence(), 24, height=8), "verdict", VERDICTS)
    yield decimals(places.no_value("no evidence"), "score", 3)
    says = "Problems that have named this trace as an example. No data: none has."
    problems = rows("Problems that name this trace", says, ask.problems(), 14, height=6).no_value("no problem names it")
    problems = color_cells(color_cells(problems, "state", _STATES), "severity", _SEVERITIES)
    problems = link_cells(problems, "problem_id", "Show this problem", _PROBLEM)
    problems = link_cells(problems, "metric", "Show this metric over time", _METRIC)
    yield hide_columns(wrap_cells(problems, "description", 240), "app")
    says = "What people said of this trace. No data: no label, or its retention (retention.labels_days) has ended."
    yield wrap_cells(rows("Labels", says, ask.labels(), 10, height=6).no_value("no labels"), "comment", 160)
    says = "What the trace recorded of itself. No data: no such trace."
    yield widths(rows("Facts", says, ask.facts(), 8, height=10).no_value("no such trace"), {"name": 150})
    says = "Fingerprint of each evaluator: id, version, parameters and model. Rows of two fingerprints do not compare. "
    versions = rows("Versions of evaluators", f"{says}No data: no scores.", ask.versions(), 16, height=10)
    yield versions.no_value("no scores")
    yield _text(ask, "expected", "Reference answers", 16 if links else 24, 7)
    if links:
        says = "The trace in other tools: grafana.trace_url and grafana.trace_links. No data: no such trace."
        tools = hide_columns(rows("Open in", says, ask.links(links), 8, height=7).no_value("no such trace"), "url")
        yield link_cells(tools, "tool", "Open the trace there", "${__data.fields.url}")


def _text(ask: TraceQueries, field: Field, title: str, width: int, height: int) -> table.Panel:
    panel = rows(title, f"{_LEGEND} No data: {_NO_TEXT[9:]}", ask.text(field), width, height=height).no_value(_NO_TEXT)
    panel = color_rows(panel, "verdict", VERDICTS | dict.fromkeys(("not judged", "masked"), "transparent"))
    panel = widths(panel, {"verdict": 100, "rank": 60, "chunk": 120, "nearest chunk": 130})
    return hide_columns(wrap_cells(wrap_cells(panel, "text", _TEXT_WIDTHS[field]), "why", 260), "from")


_TEXT_WIDTHS: Mapping[Field, int] = {"question": 520, "answer": 520, "contexts": 460, "expected": 300}
