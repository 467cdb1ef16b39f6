from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluators.outcome import NotApplicable, Outcome, Scored
from evaluators.references import nearest, nearest_embeds
from evaluators.spec import Budget, Metric, Need, NoParams, Shared, evaluator


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it should have been."""

    answer: str
    expected: tuple[str, ...]


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    return nearest_embeds(row.answer, row.expected)


@evaluator(
    "answer_semantic_similarity",
    version=1,
    domain="generation",
    method="embedding",
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric("answer_similarity", threshold=0.75, primary=True, description="similarity to the nearest reference")
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def answer_semantic_similarity(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """How near the answer as a whole is in meaning to the best of the reference answers: their cosine similarity."""
    for row in rows:
        found = nearest(row.answer, row.expected, shared)
        if isinstance(found, NotApplicable):
            yield found
        else:
            yield Scored({"answer_similarity": found.score}, evidence=(found.evidence,))
