"""The classification dashboard: errors by class and threshold."""

from collections.abc import Iterator, Mapping

from ragtide.dashboards import classification_sql as ask
from ragtide.dashboards.layout import empty_dashboard
from ragtide.dashboards.panels import curves, link_traces, matrix, rows, section, stacked_bars
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sdk import dashboard, table, timeseries, xychart
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.window_panels import window_panels
from ragtide.evaluators.builtin.classification import Params
from ragtide.evaluators.spec import Evaluator

NAME = "classification"


def classification(
    evaluator: Evaluator, params: Params, tables: Tables, rule_lines: Mapping[str, RuleLine], trace_url: str = ""
) -> dashboard.Dashboard:
    """Metrics of windows, the confusion matrix, and curves at the thresholds of the evaluator's parameters."""
    says = "One classifier: its metrics, which classes it takes for which, and what other thresholds would do."
    view = empty_dashboard(NAME, "Classification", says, tables)
    view = view.with_row(section("Metrics"))
    for panel in window_panels(evaluator, tables, rule_lines):
        view = view.with_panel(panel)
    view = view.with_row(section("Errors"))
    for error_panel in _errors(tables):
        view = view.with_panel(error_panel)
    return view.with_row(section("Scores and thresholds", _thresholds(params, tables, trace_url))).build()


def _errors(tables: Tables) -> Iterator[timeseries.Panel | table.Panel]:
    says = "Expected classes down, predicted ones across: records of the time range. Of multi-label records only those "
    says += "without any prediction are in it."
    yield matrix(rows("Confusion", says, ask.confusion(tables), 12), "expected", "predicted", "records")
    says = "Records with exactly the expected classes, with others, and with none."
    yield stacked_bars("Outcomes", says, ask.outcomes(tables), "short", 12)


def _thresholds(params: Params, tables: Tables, trace_url: str) -> Iterator[table.Panel | xychart.Panel]:
    thresholds = params.thresholds
    says = "Of each class against the rest, at score thresholds; the counts are exact at whole hundredths."
    yield curves("Precision and recall", says, ask.precision_recall(tables, thresholds), "class")
    says = "Of each class against the rest, over records with scores; one without a score of the class has 0 there. "
    says += "The area under it is roc_auc."
    yield curves("ROC", says, ask.roc(tables), "class")
    says = "The newest traces of each kind, of the newest 2,000 records with scores."
    yield link_traces(rows("Examples", says, ask.examples(tables, thresholds, params.curve_max_examples, trace_url), 8))
    says = "Each class a problem of its own: with a score of the threshold or more it is predicted. A missed record is "
    says += "misclassified where another class has such a score, else nothing was predicted."
    shares = dict.fromkeys(("precision", "recall", "f1"), "percentunit")
    yield rows("Precision and recall in detail", says, ask.counts_by_class(tables, thresholds), 24, shares)
