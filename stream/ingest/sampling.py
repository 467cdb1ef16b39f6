"""Which traces an evaluator sees: decided by the trace id alone, so that every lane and every re-reading agrees."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from evaluators.plan import Prepared
from stream.configuration.sections import SamplingSettings


def rate_of(settings: SamplingSettings, prepared: Prepared) -> float:
    """The share of traces that `prepared` sees."""
    evaluator = prepared.evaluator
    return settings.evaluators.get(evaluator.id, settings.lanes.get(evaluator.lane, 1.0))


def sampled(trace_id: str, rate: float) -> bool:
    """Whether a trace is in the sample; a smaller rate's sample lies within a larger one's."""
    digest = blake2b(trace_id.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < rate * 2**64


def by_rate(settings: SamplingSettings, plan: Sequence[Prepared]) -> Mapping[float, list[Prepared]]:
    """The plan grouped by rate, the largest first, so that smaller samples find their embeddings made."""
    groups: dict[float, list[Prepared]] = {}
    for prepared in plan:
        groups.setdefault(rate_of(settings, prepared), []).append(prepared)
    return dict(sorted(groups.items(), reverse=True))
