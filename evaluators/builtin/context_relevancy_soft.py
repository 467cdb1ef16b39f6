from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.relevance import relevance_embeds, relevances
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was asked and what was retrieved for it."""

    question: str
    contexts: tuple[Chunk, ...]


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    return relevance_embeds(row.question, row.contexts, shared)


@evaluator(
    "context_relevancy_soft",
    version=1,
    domain="retrieval",
    method="embedding",
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric("recall_relevancy", threshold=0.75, primary=True, description="relevancy of the most relevant chunk"),
        Metric("precision_relevancy", threshold=0.75, description="mean relevancy of the chunks"),
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def context_relevancy_soft(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """How near the retrieved chunks are to the question: a chunk's relevancy is the max over its sentences of their
    cosine similarity to the question; the max and the mean over chunks.
    """
    for row in rows:
        yield _relevant(row, shared)


def _relevant(row: Inputs, shared: Shared) -> Outcome:
    found = relevances(row.question, row.contexts, shared)
    if isinstance(found, NotApplicable):
        return found
    read = [relevance for relevance in found if relevance.best]  # an empty chunk has no relevancy of 0
    scores = [relevance.score for relevance in read]
    return Scored(
        {"recall_relevancy": max(scores), "precision_relevancy": sum(scores) / len(scores)},
        evidence=tuple(place for relevance in read for place in relevance.evidence("most_relevant")),
    )
