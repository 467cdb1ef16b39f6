"""What rows of judges carry for estimates: the score of a companion, on judged traces and on all others.

The lane judge runs the companions itself, on every trace it reads. A row outside the sample then holds three numbers,
and the sums of its window need nothing of another lane, whose rows may come later.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ragtide.drift.windows import weight_parts
from ragtide.evaluators.companions import companion_of
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator, parameters
from ragtide.evaluators.prediction_powered import parts_of
from ragtide.evaluators.resources import Batch
from ragtide.evaluators.run import run_all
from ragtide.evaluators.spec import Evaluator, Metric
from ragtide.evaluators.trace import Trace
from ragtide.stream.ingest.rows import is_left_out
from ragtide.stream.settings.loader import Settings

CheapScores = Mapping[str, Sequence[float | None]]  # of each trace, by `evaluator.metric`; None: it has no score


class _Estimated(NamedTuple):
    """A metric of a judge, and its companion; without one it has the same cheap score everywhere."""

    metric: Metric
    companion: str | None
    otherwise: float  # cheap score where the companion has none: any constant is right


class Companions:
    """Scores traces with companions, and makes the sums of a plan's judged metrics."""

    def __init__(
        self, plan: Sequence[PreparedEvaluator], companions: Sequence[PreparedEvaluator], settings: Settings
    ) -> None:
        self._companions = companions
        metrics = {f"{one.evaluator.id}.{metric.key}": metric for one in companions for metric in one.evaluator.metrics}
        self._estimated = [_estimated(prepared, metrics, settings) for prepared in plan]

    def score(self, traces: Sequence[Trace], shared: Batch, sizes: Sequence[int]) -> CheapScores:
        """Score all traces."""
        if not self._companions:
            return {}
        columns = run_all(self._companions, traces, shared, sizes)
        return {
            f"{one.evaluator.id}.{metric.key}": [_value(outcome, metric.key) for outcome in column]
            for one, column in zip(self._companions, columns, strict=True)
            for metric in one.evaluator.metrics
        }

    def sums(
        self,
        at: int,
        outcomes: Sequence[Outcome | None],
        weights: Sequence[float],
        cheap: CheapScores,
        on_request: Collection[int] = (),
    ) -> list[dict[str, float]] | None:
        """Return what each row of the plan's evaluator at this place adds to the sums; None if it has no estimates.

        Traces judged on request, at these positions, add what they would add if they had not been judged.
        """
        estimated = self._estimated[at]
        if not estimated:
            return None
        sums: list[dict[str, float]] = [{} for _ in outcomes]
        sampled = [None if place in on_request else outcome for place, outcome in enumerate(outcomes)]
        for metric, companion, otherwise in estimated:
            scores = cheap[companion] if companion is not None else [None] * len(outcomes)
            for own, outcome, weight, score in zip(sums, sampled, weights, scores, strict=True):
                if weight:  # else it could never be judged, and is no part of what is estimated
                    cheap_score, value = otherwise if score is None else score, _value(outcome, metric.key)
                    own |= parts_of(metric.key, cheap_score, weight, judged=_is_judged(outcome), score=value)
                    if value is not None:
                        own |= weight_parts(metric, value, weight)
        return sums


def stands_for_others(evaluator: Evaluator, settings: Settings) -> bool:
    """Whether a trace that the judge scores may stand for others: of a sample, or within limits."""
    use = evaluator.judge
    return (
        settings.sampling.weighs(evaluator)
        or settings.evaluators.judge.has_limits
        or (use is not None and use.records_per_hour(parameters(evaluator, settings.evaluators)) is not None)
    )


def _estimated(prepared: PreparedEvaluator, metrics: Mapping[str, Metric], settings: Settings) -> list[_Estimated]:
    evaluator = prepared.evaluator
    if evaluator.judge is None or not stands_for_others(evaluator, settings):
        return []
    found = []
    for metric in evaluator.metrics:
        name = companion_of(evaluator, metric, settings.evaluators)
        companion = metrics.get(name or "")
        if companion is not None:
            middle = (companion.low + companion.high) / 2 if companion.bounded else 0.0
            found.append(_Estimated(metric, name, middle))
        else:
            found.append(_Estimated(metric, None, 0.0))
    return found


def _is_judged(outcome: Outcome | None) -> bool:
    """Whether the judge answered, also that it does not apply."""
    return isinstance(outcome, Scored) or (isinstance(outcome, NotApplicable) and not is_left_out(outcome))


def _value(outcome: Outcome | None, key: str) -> float | None:
    return outcome.metrics.get(key) if isinstance(outcome, Scored) else None
