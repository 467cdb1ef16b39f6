"""The dashboard of objects in images: quality and errors by class."""

from collections.abc import Iterator, Mapping

from ragtide.dashboards import objects_sql as ask
from ragtide.dashboards.layout import empty_dashboard
from ragtide.dashboards.panels import curves, link_traces, rows, section, stacked_bars
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sdk import board, dashboard, table, timeseries, xychart
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.variables import one_of
from ragtide.dashboards.window_panels import window_panels
from ragtide.evaluators.builtin.object_detection import Params
from ragtide.evaluators.spec import Evaluator

NAME = "objects"
_SHARES = dict.fromkeys(("precision", "recall", "f1"), "percentunit")


def objects(
    evaluator: Evaluator, params: Params, tables: Tables, rule_lines: Mapping[str, RuleLine], trace_url: str = ""
) -> dashboard.Dashboard:
    """Metrics of windows, kinds of errors at the chosen score, the precision-recall curve, and examples."""
    says = "Objects in images: average precision and recall, what was taken for what, and what other scores would do."
    view = empty_dashboard(NAME, "Objects in images", says, tables).with_variable(_scores())
    view = view.with_row(section("Metrics"))
    for panel in window_panels(evaluator, tables, rule_lines):
        view = view.with_panel(panel)
    view = view.with_row(section("Errors"))
    for error_panel in _errors(params, tables):
        view = view.with_panel(error_panel)
    return view.with_row(section("Curve and examples", _curve(params, tables, trace_url))).build()


def _scores() -> board.CustomVariable:
    return one_of(ask.SCORE, "Scores from", {f"{score / 100:g}": str(score) for score in range(0, 101, 5)}, "0.5")


def _errors(params: Params, tables: Tables) -> Iterator[timeseries.Panel | table.Panel]:
    iou = f"At an IoU of {params.pr_curve_iou_threshold:g} (parameter pr_curve_iou_threshold) and the chosen score."
    says = f"{iou} A false prediction on an object of another class is a misclassification, any other a hallucination; "
    says += (
        "a missed object is misclassified where a prediction of another class lies on it. Predictions of a class that "
    )
    says += "an image has no object of count here, and not in average precision."
    yield rows("Errors by class", says, ask.by_class(tables), 24, _SHARES)
    yield stacked_bars("Predictions", f"All predictions, by kind. {iou}", ask.predictions(tables), "short", 12)
    yield stacked_bars("Objects", f"All objects: found, or missed, by kind. {iou}", ask.objects(tables), "short", 12)


def _curve(params: Params, tables: Tables, trace_url: str) -> Iterator[table.Panel | xychart.Panel]:
    says = f"Of each class at an IoU of {params.pr_curve_iou_threshold:g}, at every hundredth of a score: exact there."
    yield curves("Precision and recall", says, ask.precision_recall(tables), "class")
    says = "In how many images each kind came up at the chosen score, and the newest of their traces: of the newest "
    says += "2,000 images."
    yield link_traces(rows("Examples", says, ask.examples(tables, params.pr_curve_max_examples, trace_url), 8))
    says = "Regions that the evaluator points at, by place in the trace's lists: of each image the surest false "
    says += "predictions and the first missed objects, whatever score is chosen."
    yield link_traces(rows("Regions", says, ask.places(tables, trace_url), 8))
