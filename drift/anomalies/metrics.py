"""Which metrics are monitored for changes, and with which kind of detector."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ragtide.drift.problems import Aspect
from ragtide.drift.rules import RULE_KINDS
from ragtide.drift.windows import MetricRef
from ragtide.evaluators.spec import Evaluator, Lane

SignalKind = Literal["score", "rate", "positive", "category"]
_OPERATIONS, _INPUTS = "operations", "inputs"
_BOOLEAN_METRICS = frozenset({"operations.error", "operations.empty_answer", "operations.empty_contexts"})
_QUESTION_METRICS = frozenset(  # all other metrics of inputs are about answers
    {"inputs.question_words", "inputs.contexts", "inputs.context_words", "inputs.question_language"}
)
_LABELS = ("inputs.question_language", "inputs.answer_language")


@dataclass(frozen=True, slots=True)
class MonitoredMetric:
    """A metric under its name `evaluator.metric`, with its detector's kind. `ref` is None for labels."""

    name: str
    kind: SignalKind
    lane: Lane
    evaluator: Evaluator
    ref: MetricRef | None

    @property
    def aspect(self) -> Aspect:
        """`inputs` for metrics of questions and retrieved contexts, else `level`."""
        return "inputs" if self.name in _QUESTION_METRICS else "level"

    @property
    def better(self) -> str | None:
        """`higher` or `lower`; None for labels."""
        return None if self.ref is None else self.ref.metric.better

    @property
    def unit(self) -> str:
        """Unit of the values; empty without one."""
        return "" if self.ref is None else self.ref.metric.unit or ""

    @property
    def low(self) -> float:
        """Lowest value of a score; 0 for shares."""
        return self.ref.metric.low if self.ref is not None and self.kind == "score" else 0.0

    @property
    def width(self) -> float:
        """Width of a score's range; 1 for shares."""
        return self.ref.metric.high - self.low if self.ref is not None and self.kind == "score" else 1.0


def monitored_metrics(evaluators: Iterable[Evaluator], ignored: Iterable[str] = ()) -> dict[str, MonitoredMetric]:
    """Select primary metrics, latency, cost and inputs, by name. Metrics that are no mean over records are left out."""
    found = [metric for evaluator in evaluators for metric in _monitored(evaluator)]
    return {metric.name: metric for metric in found if metric.name not in set(ignored)}


def group_by_lane(monitored: Mapping[str, MonitoredMetric]) -> dict[tuple[SignalKind, Lane], list[str]]:
    """Group names by kind and lane, in order."""
    found: dict[tuple[SignalKind, Lane], list[str]] = {}
    for metric in monitored.values():
        found.setdefault((metric.kind, metric.lane), []).append(metric.name)
    return {group: sorted(names) for group, names in sorted(found.items())}


def _monitored(evaluator: Evaluator) -> Iterable[MonitoredMetric]:
    for metric in evaluator.metrics:
        of_records = evaluator.combine is None or metric is evaluator.carrier
        if of_records and (metric.primary or evaluator.id in (_OPERATIONS, _INPUTS)):
            ref = MetricRef(evaluator, metric)
            yield MonitoredMetric(ref.name, _signal_kind(ref), evaluator.lane, evaluator, ref)
    if evaluator.id == _INPUTS:
        for label in _LABELS:
            yield MonitoredMetric(label, "category", evaluator.lane, evaluator, None)


def _signal_kind(ref: MetricRef) -> SignalKind:
    """`rate` if the metric's rule judges the share of records beyond a threshold, else by the metric's range."""
    if not ref.metric.bounded:
        return "positive"
    shares = RULE_KINDS[ref.evaluator.rule_of(ref.metric)].value_type != "number" or ref.name in _BOOLEAN_METRICS
    return "rate" if shares and ref.metric.threshold is not None else "score"
