"""Sampling: which traces an evaluator scores, and with which probability each is in the sample.

A trace has one hash fraction, from 0 to 1, of its id: an evaluator scores it if that is below the probability. So every
lane and every redelivery draws alike, the sample of a smaller rate is part of a larger one's, and evaluators share the
calls of a judge. The probability depends on the trace and on those before it, never on the fraction or on a score by
the evaluator itself. So scores weighted by 1 / probability estimate what all traces would have scored (Horvitz and
Thompson 1952).
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.trace import Trace
from ragtide.stream.ingest.enriched import is_only_for_judges, requested_judges
from ragtide.stream.ingest.estimation import CheapScores
from ragtide.stream.ingest.rows import TraceContext
from ragtide.stream.settings.sampling import SamplingRule, SamplingSettings

_HOUR_S = 3600
_MOST_GROUPS = 20_000  # whose first traces are remembered; the oldest are forgotten
_HASHES = 2**64


@dataclass(frozen=True, slots=True)
class Decisions:
    """What one evaluator does with a batch.

    `weights`: the number of traces that each trace stands for, 1 / probability; 0 if it can never be in the sample.
    `not_sampled`: positions of the traces that are not in the sample and not scored. `on_request`: positions of those
    that are scored because a person asks for it. Who asks is no random choice, so their scores stand for no trace, not
    even their own. `left_alone`: positions of those whose message is for other judges: their rows stay as they are.
    """

    weights: Sequence[float]
    not_sampled: Sequence[int]
    on_request: Sequence[int] = ()
    left_alone: Sequence[int] = ()

    @property
    def unscored(self) -> Sequence[int]:
        """Positions of the traces that it does not score."""
        return [*self.not_sampled, *self.left_alone]

    @property
    def row_weights(self) -> Sequence[float]:
        """The weights as rows have them: 0 on request."""
        if not self.on_request:
            return self.weights
        requested = frozenset(self.on_request)
        return [0.0 if at in requested else weight for at, weight in enumerate(self.weights)]

    def with_requests(self, evaluator: str, batch: Sequence[TraceContext]) -> "Decisions":
        """Return the decisions with what people ask of this evaluator, whatever its sample."""
        on_request = [
            at for at, ctx in enumerate(batch) if evaluator in requested_judges(ctx.record) and self.weights[at]
        ]
        left_alone = [
            at
            for at, ctx in enumerate(batch)
            if is_only_for_judges(ctx.record) and evaluator not in requested_judges(ctx.record)
        ]
        apart = {*on_request, *left_alone}
        not_sampled = [at for at in self.not_sampled if at not in apart]
        return Decisions(self.weights, not_sampled, on_request, left_alone)


class Sampler:
    """Decides which traces the evaluators of a plan score. Used by one thread.

    With `takes_requests` judges score what people ask of them, too.
    """

    def __init__(
        self,
        settings: SamplingSettings,
        plan: Sequence[PreparedEvaluator],
        companions: Sequence[PreparedEvaluator] = (),
        *,
        takes_requests: bool = False,
    ) -> None:
        self._takes_requests = takes_requests
        self.rates = [rate_of(settings, prepared) for prepared in plan]  # where no rule matches
        self._rules = settings.rules
        self._rules_of = [
            tuple(
                at
                for at, rule in enumerate(settings.rules)
                if not rule.evaluators or prepared.evaluator.id in rule.evaluators
            )
            for prepared in plan
        ]
        self._evaluators = [prepared.evaluator.id for prepared in plan]
        self._are_judges = [prepared.evaluator.judge is not None for prepared in plan]
        self._always = settings.always
        self._first_traces = _FirstTraces(settings.first_per_hour)
        better = {
            f"{one.evaluator.id}.{metric.key}": metric.better for one in companions for metric in one.evaluator.metrics
        }
        self._worse_than = {
            name: (limit, better[name] == "higher")
            for name, limit in settings.always.worse_than.items()
            if name in better
        }
        self._unsure = {name: unsure for name, unsure in settings.unsure.items() if name in better}

    def decide(self, batch: Sequence[TraceContext], cheap: CheapScores) -> list[Decisions]:
        """Decide about a batch with these scores of companions, in the order of the plan."""
        included, worse, factors = self._included(batch), self._worse(batch, cheap), self._factors(batch, cheap)
        keys = list(zip(self.rates, self._rules_of, self._are_judges, strict=True))
        hashes: list[int] = []
        decided: dict[tuple[float, tuple[int, ...], bool], Decisions] = {}
        for rate, own, is_judge in dict.fromkeys(keys):
            rules = [self._rules[at] for at in own]
            probabilities = [_rate_by(rules, rate, ctx.trace) for ctx in batch] if rules else [rate] * len(batch)
            if is_judge and factors:
                probabilities = [min(1.0, one * by) for one, by in zip(probabilities, factors, strict=True)]
            for at in {*included, *worse} if is_judge else included:
                probabilities[at] = 1.0 if probabilities[at] else 0.0
            not_sampled: list[int] = []
            if any(probability < 1 for probability in probabilities):
                hashes = hashes or [_hash(ctx.trace.trace_id) for ctx in batch]
                not_sampled = [at for at, one in enumerate(hashes) if one >= probabilities[at] * _HASHES]
            weights = [1 / probability if probability else 0.0 for probability in probabilities]
            decided[rate, own, is_judge] = Decisions(weights, not_sampled)
        if self._takes_requests and any(requested_judges(ctx.record) for ctx in batch):
            return [decided[key].with_requests(one, batch) for one, key in zip(self._evaluators, keys, strict=True)]
        return [decided[key] for key in keys]

    def _included(self, batch: Sequence[TraceContext]) -> list[int]:
        """Return the positions of traces that are in every sample."""
        found: list[int] = []
        if self._first_traces.segments:
            found += [at for at, ctx in enumerate(batch) if self._first_traces.include(ctx)]
        if self._always.errors:
            found += [at for at, ctx in enumerate(batch) if ctx.trace.error is not None]
        return found

    def _worse(self, batch: Sequence[TraceContext], cheap: CheapScores) -> list[int]:
        """Return the positions of traces with a cheap score that every judge looks at."""
        return [
            at
            for name, (limit, is_higher_better) in self._worse_than.items()
            for at, score in zip(range(len(batch)), cheap[name], strict=True)
            if score is not None and (score < limit if is_higher_better else score > limit)
        ]

    def _factors(self, batch: Sequence[TraceContext], cheap: CheapScores) -> list[float]:
        """Return how much more likely each trace is judged because its cheap scores say little; empty: all alike."""
        if not self._unsure:
            return []
        factors = [1.0] * len(batch)
        for name, unsure in self._unsure.items():
            for at, score in zip(range(len(batch)), cheap[name], strict=True):
                if score is not None:
                    factors[at] = max(factors[at], unsure.factor(score))
        return factors


class _FirstTraces:
    """The first traces of every hour of event time, for each value of some segments."""

    def __init__(self, segments: dict[str, int]) -> None:
        self.segments = segments
        self._groups: OrderedDict[tuple[str, str, str, int], set[str]] = OrderedDict()

    def include(self, ctx: TraceContext) -> bool:
        """Return whether the trace is one of them. A trace that was stays one when it is read again.

        A trace that comes again because somebody dislikes the answer becomes none.
        """
        included = False
        comes_first = not requested_judges(ctx.record)
        trace = ctx.trace
        for name, most in self.segments.items():
            value = trace.segments.get(name)
            if value is None:
                continue
            key = (trace.app, name, value, ctx.second // _HOUR_S)
            group = self._groups.setdefault(key, set())
            if comes_first and len(group) < most:
                group.add(trace.trace_id)
            included |= trace.trace_id in group
            if len(self._groups) > _MOST_GROUPS:
                self._groups.popitem(last=False)
        return included


def rate_of(settings: SamplingSettings, prepared: PreparedEvaluator) -> float:
    """Sampling rate of `prepared` where no rule matches."""
    evaluator = prepared.evaluator
    return settings.evaluators.get(evaluator.id, settings.lanes.get(evaluator.lane, 1.0))


def is_sampled(trace_id: str, rate: float) -> bool:
    """Whether a trace is in the sample. The sample of a smaller rate is part of a larger one's."""
    return rate >= 1 or _hash(trace_id) < rate * _HASHES


def _hash(trace_id: str) -> int:
    return int.from_bytes(blake2b(trace_id.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def _rate_by(rules: Sequence[SamplingRule], otherwise: float, trace: Trace) -> float:
    return next((rule.rate for rule in rules if rule.matches(trace.app, trace.segments)), otherwise)


def without_traces(prepared: PreparedEvaluator, trace_ids: Sequence[str]) -> PreparedEvaluator:
    """The evaluator, restricted so that it does not select these traces."""
    if not trace_ids:
        return prepared
    own = (prepared.evaluator, prepared.params, prepared.fingerprint, prepared.tasks, prepared.encoder)
    return _WithoutTraces(*own, frozenset(trace_ids))


@dataclass(frozen=True, slots=True)
class _WithoutTraces(PreparedEvaluator):
    excluded: Collection[str] = ()

    def selects(self, trace: Trace) -> bool:
        return trace.trace_id not in self.excluded and PreparedEvaluator.selects(self, trace)
