"""Which metrics are watched for changes, and which detector fits them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from drift.problems.problem import Aspect
from drift.windows.metrics import WatchedMetric
from evaluators.spec import Evaluator, Lane

Kind = Literal["score", "rate", "positive", "category"]
_OPERATIONS, _INPUTS = "operations", "inputs"
_YES_OR_NO = frozenset({"operations.error", "operations.empty_answer", "operations.empty_contexts"})
_ASKED = frozenset({"question_words", "contexts", "context_words", "question_language"})  # the others are of answers
_LABELS = ("question_language", "answer_language")


@dataclass(frozen=True, slots=True)
class Watch:
    """One metric or category, under its name `evaluator.metric`, and the detector's kind; `metric` None: labels."""

    name: str
    kind: Kind
    lane: Lane
    evaluator: Evaluator
    metric: WatchedMetric | None

    @property
    def aspect(self) -> Aspect:
        """`inputs` where it is of what users ask and what was retrieved for it."""
        asked = self.evaluator.id == _INPUTS and self.name.partition(".")[2] in _ASKED
        return "inputs" if asked else "level"

    @property
    def low(self) -> float:
        """The least value of a score."""
        return self.metric.metric.low if self.metric is not None and self.kind == "score" else 0.0

    @property
    def span(self) -> float:
        """What a score's range spans; 1 of shares."""
        return self.metric.metric.high - self.low if self.metric is not None and self.kind == "score" else 1.0


def watches(evaluators: Iterable[Evaluator], ignored: Iterable[str] = ()) -> dict[str, Watch]:
    """Primary metrics, latency and cost, and what users ask; by name. Numbers that are no mean of records are none."""
    found = [watch for evaluator in evaluators for watch in _of(evaluator)]
    return {watch.name: watch for watch in found if watch.name not in set(ignored)}


def by_group(watched: Mapping[str, Watch]) -> dict[tuple[Kind, Lane], list[str]]:
    """Names by kind and lane."""
    found: dict[tuple[Kind, Lane], list[str]] = {}
    for watch in watched.values():
        found.setdefault((watch.kind, watch.lane), []).append(watch.name)
    return {group: sorted(names) for group, names in sorted(found.items())}


def _of(evaluator: Evaluator) -> Iterable[Watch]:
    for metric in evaluator.metrics:
        of_records = evaluator.combine is None or metric is evaluator.carrier
        if of_records and (metric.primary or evaluator.id in (_OPERATIONS, _INPUTS)):
            watched = WatchedMetric(evaluator, metric)
            yield Watch(watched.name, _kind(watched), evaluator.lane, evaluator, watched)
    if evaluator.id == _INPUTS:
        for label in _LABELS:
            yield Watch(f"{_INPUTS}.{label}", "category", evaluator.lane, evaluator, None)


def _kind(watched: WatchedMetric) -> Kind:
    """A share of records beyond the threshold, where that is how the metric is judged; else by its range."""
    if not watched.metric.bounded:
        return "positive"
    shares = watched.evaluator.rule_of(watched.metric) in ("share", "any") or watched.name in _YES_OR_NO
    return "rate" if shares and watched.metric.threshold is not None else "score"
