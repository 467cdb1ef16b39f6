from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.similarity import similarities


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was asked and answered."""

    question: str
    answer: str


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    answer = shared.sentences(row.answer)
    if answer and row.question.strip():
        yield row.question
        yield from (sentence.text for sentence in answer)


@evaluator(
    "answer_relevancy_sentence",
    version=1,
    domain="generation",
    method="embedding",
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric("answer_relevancy", threshold=0.75, primary=True, description="relevancy of the most relevant sentence"),
        Metric("mean_answer_relevancy", threshold=0.75, description="mean relevancy of the sentences"),
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def answer_relevancy_sentence(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """How near the answer is to the question: max and mean over answer sentences of their cosine similarity to it."""
    for row in rows:
        yield _relevant(row, shared)


def _relevant(row: Inputs, shared: Shared) -> Outcome:
    if not row.question.strip():
        return NotApplicable("empty_question")
    answer = shared.sentences(row.answer)
    if not answer:
        return NotApplicable("too_short")
    [similarity] = similarities(shared, [row.question], [sentence.text for sentence in answer])
    best, worst = int(similarity.argmax()), int(similarity.argmin())
    return Scored(
        {
            "answer_relevancy": float(similarity[best]),
            "mean_answer_relevancy": float(similarity.mean(dtype=np.float64)),
        },
        evidence=tuple(
            Evidence("answer", answer[i].start, answer[i].end, kind=kind, score=float(similarity[i]))
            for kind, i in (("most_relevant", best), ("least_relevant", worst))
        ),
    )
