from collections.abc import Iterator
from dataclasses import dataclass

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.relevance import relevance_embeds, relevances
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question and the retrieved chunks."""

    question: str
    contexts: tuple[Chunk, ...]


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    return relevance_embeds(row.question, row.contexts, shared)


@evaluator(
    "context_relevancy_soft",
    version=2,
    domain="retrieval",
    method="embedding",
    per_record=True,
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
def context_relevancy_soft(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Similarity of the retrieved chunks to the question. The relevancy of a chunk is the highest cosine similarity of
    its sentences to the question; the metrics are the maximum and the mean over chunks, 0 if nothing was retrieved.
    """
    found = relevances(row.question, row.contexts, shared)
    if isinstance(found, NotApplicable):
        return found
    if not found:
        return Scored({"recall_relevancy": 0.0, "precision_relevancy": 0.0})
    read = [relevance for relevance in found if relevance.best]  # an empty chunk has no relevancy, rather than 0
    scores = [relevance.score for relevance in read]
    return Scored(
        {"recall_relevancy": max(scores), "precision_relevancy": sum(scores) / len(scores)},
        evidence=tuple(place for relevance in read for place in relevance.evidence("most_relevant")),
    )
