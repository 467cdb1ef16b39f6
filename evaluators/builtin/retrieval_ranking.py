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
    """What was asked, what was retrieved for it in rank order, and the known grade of each chunk by its id."""

    question: str
    contexts: tuple[Chunk, ...]
    relevance: Mapping[str, float] | None


class Params(BaseModel, frozen=True, extra="forbid"):
    """What grades a chunk whose relevance is not known."""

    relevant_chunk_threshold: float = Field(
        0.7, ge=0, le=1, description="Least relevance of a relevant chunk where the trace has no grades."
    )
    grader: Literal["embedding"] = Field("embedding", description="What grades chunks where the trace has no grades.")


METRICS = (
    Metric("retrieval_precision", threshold=0.5, description="share of the chunks that is relevant"),
    Metric("average_precision", threshold=0.5, description="mean of precision@k at the relevant chunks"),
    Metric("reciprocal_rank", threshold=0.5, description="1 / rank of the first relevant chunk, 0 where none is"),
    Metric("hit_rate", threshold=0.75, description="whether any chunk is relevant"),
    Metric("ndcg", threshold=0.75, primary=True, description="DCG / that of the chunks' best order, linear gain"),
)


def _embeds(row: Inputs, shared: Shared, params: Params) -> Iterator[str]:
    if row.relevance is None and recorded_chunks(row.contexts) == row.contexts:
        yield from relevance_embeds(row.question, row.contexts, shared)


@evaluator(
    "retrieval_ranking",
    version=1,
    domain="retrieval",
    method="embedding",
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def retrieval_ranking(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """How well the retrieved chunks are ranked, from a grade for each: the trace's own `relevance` where it has one (a
    chunk it does not name is 0, one above 0 is relevant), else the max over the chunk's sentences of their cosine
    similarity to the question. NDCG's ideal is the best order of what was retrieved.
    """
    for row in rows:
        yield _evaluate(row, shared, params)


def _evaluate(row: Inputs, shared: Shared, params: Params) -> Outcome:
    if not row.contexts:
        return NotApplicable("empty_contexts")
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
        return NotApplicable("missing_chunk_text")  # it holds a rank, and nothing tells its grade
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
