from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, Shared, evaluator
from ragtide.evaluators.text.ranks import average_precision, ndcg, reciprocal_rank, retrieval_precision
from ragtide.evaluators.text.recorded_chunks import recorded_chunks
from ragtide.evaluators.text.relevance import relevance_embeds, relevances
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question, the retrieved chunks in rank order, and the recorded grades by chunk id."""

    question: str
    contexts: tuple[Chunk, ...]
    relevance: Mapping[str, float] | None


class Params(BaseModel, frozen=True, extra="forbid"):
    """How chunks without recorded relevance are graded."""

    relevant_chunk_threshold: float = Field(
        0.7, ge=0, le=1, description="Minimum relevance of a relevant chunk, if the trace has no grades."
    )
    grader: Literal["embedding"] = Field(
        "embedding", description="Method that grades chunks, if the trace has no grades."
    )


METRICS = (
    Metric("retrieval_precision", threshold=0.5, description="share of chunks that are relevant"),
    Metric("average_precision", threshold=0.5, description="mean of precision@k over the ranks of relevant chunks"),
    Metric("reciprocal_rank", threshold=0.5, description="1 / rank of the first relevant chunk, 0 if there is none"),
    Metric("hit_rate", threshold=0.75, binary=True, description="1 if any chunk is relevant"),
    Metric(
        "ndcg", threshold=0.75, primary=True, description="DCG / DCG of the best order of the chunks, with linear gain"
    ),
)


def _embeds(row: Inputs, shared: Shared, params: Params) -> Iterator[str]:
    if row.relevance is None and recorded_chunks(row.contexts) == row.contexts:
        yield from relevance_embeds(row.question, row.contexts, shared)


@evaluator(
    "retrieval_ranking",
    version=2,
    domain="retrieval",
    method="embedding",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def retrieval_ranking(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Ranking quality of the retrieved chunks, from a grade for each. Grades come from `relevance` if it was recorded:
    a chunk that it does not name has 0, and a grade above 0 is relevant. Otherwise a chunk's grade is the highest
    cosine similarity of its sentences to the question. The ideal order of NDCG is the best order of these chunks. All
    metrics are 0 if nothing was retrieved.
    """
    return _by_grades(row.contexts, row.relevance) if row.relevance is not None else _by_question(row, shared, params)


def _by_grades(contexts: Sequence[Chunk], relevance: Mapping[str, float]) -> Outcome:
    if not all(map(isfinite, relevance.values())):
        return NotApplicable("relevance_not_finite")
    grades = [max(0.0, relevance.get(chunk.id, 0.0)) for chunk in contexts]
    graded = (
        Evidence("contexts", 0, len(chunk.text), chunk.id, kind="graded", score=grade)
        for chunk, grade in zip(contexts, grades, strict=True)
        if chunk.text is not None
    )
    return _score(grades, [grade > 0 for grade in grades], tuple(graded))


def _by_question(row: Inputs, shared: Shared, params: Params) -> Outcome:
    if recorded_chunks(row.contexts) not in (None, row.contexts):
        return NotApplicable("missing_chunk_text")  # it has a rank, but its grade is unknown
    found = relevances(row.question, row.contexts, shared)
    if isinstance(found, NotApplicable):
        return found
    grades = [relevance.score for relevance in found]
    evidence = tuple(place for relevance in found for place in relevance.evidence("most_relevant"))
    return _score(grades, [grade >= params.relevant_chunk_threshold for grade in grades], evidence)


def _score(grades: Sequence[float], relevant: Sequence[bool], evidence: tuple[Evidence, ...]) -> Scored:
    metrics = {
        "retrieval_precision": retrieval_precision(relevant),
        "average_precision": average_precision(relevant),
        "reciprocal_rank": reciprocal_rank(relevant),
        "hit_rate": float(any(relevant)),
        "ndcg": ndcg(grades) if any(relevant) else 0.0,
    }
    return Scored(metrics, evidence=evidence)
