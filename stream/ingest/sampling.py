"""Sampling of traces by the trace id only, so that every lane and every redelivery decides alike."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.trace import Trace
from ragtide.stream.settings.sections import SamplingSettings


def rate_of(settings: SamplingSettings, prepared: PreparedEvaluator) -> float:
    """Sampling rate of `prepared`."""
    evaluator = prepared.evaluator
    return settings.evaluators.get(evaluator.id, settings.lanes.get(evaluator.lane, 1.0))


def is_sampled(trace_id: str, rate: float) -> bool:
    """Whether a trace is in the sample. The sample of a smaller rate is part of a larger one's."""
    if rate >= 1:
        return True
    digest = blake2b(trace_id.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < rate * 2**64


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
