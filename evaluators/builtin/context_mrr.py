from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, Shared, evaluator
from ragtide.evaluators.text.relevance import relevance_embeds, relevances
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question and the retrieved chunks, in rank order."""

    question: str
    contexts: tuple[Chunk, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """When a chunk is relevant, and how many ranks count."""

    relevant_chunk_threshold: float = Field(0.7, ge=0, le=1, description="Minimum relevance of a relevant chunk.")
    max_rank: int = Field(10, ge=1, description="Last rank that counts.")


def _embeds(row: Inputs, shared: Shared, params: Params) -> Iterator[str]:
    return relevance_embeds(row.question, row.contexts[: params.max_rank], shared)


@evaluator(
    "context_mrr",
    version=2,
    domain="retrieval",
    method="embedding",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "reciprocal_rank",
            threshold=0.75,
            primary=True,
            description="1 / rank of the first relevant chunk, 0 if there is none; the mean over a window is the MRR",
        )
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def context_mrr(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Rank of the first relevant chunk, as 1 / rank. A chunk is relevant if the similarity of one of its sentences to
    the question reaches the threshold. 0 if nothing was retrieved. Not applicable if a chunk without recorded text may
    be the first.
    """
    found = relevances(row.question, row.contexts[: params.max_rank], shared)
    if isinstance(found, NotApplicable):
        return found
    for rank, relevance in enumerate(found, 1):
        if relevance.chunk.text is None:
            return NotApplicable("missing_chunk_text")
        if relevance.score >= params.relevant_chunk_threshold:
            return Scored({"reciprocal_rank": 1 / rank}, evidence=relevance.evidence("first_relevant"))
    best = max(found, key=lambda relevance: relevance.score, default=None)
    return Scored({"reciprocal_rank": 0.0}, evidence=best.evidence("most_relevant") if best else ())
