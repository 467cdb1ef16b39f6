"""Which metrics are watched for changes, and which detector fits them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ragtide.drift.problems.model import Aspect
from ragtide.drift.rules.kinds import KINDS
from ragtide.drift.windows.metrics import MetricRef
from ragtide.evaluators.spec import Evaluator, Lane

SignalKind = Literal["score", "rate", "positive", "category"]
_OPERATIONS, _INPUTS = "operations", "inputs"
_BOOLEAN_METRICS = frozenset({"operations.error", "operations.empty_answer", "operations.empty_contexts"})
_QUESTION_METRICS = frozenset(
    {"question_words", "contexts", "context_words", "question_language"}
)  # the others are of answers
_LABELS = ("question_language", "answer_language")


@dataclass(frozen=True, slots=True)
class MonitoredMetric:
    """One metric or category, under its name `evaluator.metric`, and the detector's kind; `metric` None: labels."""

    name: str
    kind: SignalKind
    lane: Lane
    evaluator: Evaluator
    ref: MetricRef | None

    @property
    def aspect(self) -> Aspect:
        """`inputs` where it is of what users ask and what was retrieved for it."""
        asked = self.evaluator.id == _INPUTS and self.name.partition(".")[2] in _QUESTION_METRICS
        return "inputs" if asked else "level"

    @property
    def low(self) -> float:
        """The least value of a score."""
        return self.ref.metric.low if self.ref is not None and self.kind == "score" else 0.0

    @property
    def span(self) -> float:
        """What a score's range spans; 1 of shares."""
        return self.ref.metric.high - self.low if self.ref is not None and self.kind == "score" else 1.0


def monitored_metrics(evaluators: Iterable[Evaluator], ignored: Iterable[str] = ()) -> dict[str, MonitoredMetric]:
    """Primary metrics, latency and cost, and what users ask; by name. Numbers that are no mean of records are none."""
    found = [metric for evaluator in evaluators for metric in _monitored(evaluator)]
    return {metric.name: metric for metric in found if metric.name not in set(ignored)}


def group_by_lane(ref: Mapping[str, MonitoredMetric]) -> dict[tuple[SignalKind, Lane], list[str]]:
    """Names by kind and lane."""
    found: dict[tuple[SignalKind, Lane], list[str]] = {}
    for metric in ref.values():
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
            yield MonitoredMetric(f"{_INPUTS}.{label}", "category", evaluator.lane, evaluator, None)


def _signal_kind(ref: MetricRef) -> SignalKind:
    """A share of records beyond the threshold, where that is how the metric is judged; else by its range."""
    if not ref.metric.bounded:
        return "positive"
    shares = KINDS[ref.evaluator.rule_of(ref.metric)].value_type != "number" or ref.name in _BOOLEAN_METRICS
    return "rate" if shares and ref.metric.threshold is not None else "score"
