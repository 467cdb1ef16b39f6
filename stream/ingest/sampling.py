"""Which traces an evaluator sees: decided by the trace id alone, so that every lane and every re-reading agrees."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from evaluators.plan import Prepared
from evaluators.trace import Trace
from stream.configuration.sections import SamplingSettings


def rate_of(settings: SamplingSettings, prepared: Prepared) -> float:
    """The share of traces that `prepared` sees."""
    evaluator = prepared.evaluator
    return settings.evaluators.get(evaluator.id, settings.lanes.get(evaluator.lane, 1.0))


def sampled(trace_id: str, rate: float) -> bool:
    """Whether a trace is in the sample; a smaller rate's sample lies within a larger one's."""
    if rate >= 1:
        return True
    digest = blake2b(trace_id.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < rate * 2**64


def leaving_out(prepared: Prepared, trace_ids: Sequence[str]) -> Prepared:
    """The same evaluator, which does not select these traces."""
    if not trace_ids:
        return prepared
    own = (prepared.evaluator, prepared.params, prepared.fingerprint, prepared.tasks, prepared.encoder)
    return _Sampled(*own, frozenset(trace_ids))


@dataclass(frozen=True, slots=True)
class _Sampled(Prepared):
    left_out: Collection[str] = ()

    def selects(self, trace: Trace) -> bool:
        return trace.trace_id not in self.left_out and Prepared.selects(self, trace)
