from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.similarity import similarities


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question and its answer."""

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
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "answer_relevancy",
            threshold=0.75,
            primary=True,
            description="highest similarity of an answer sentence to the question",
        ),
        Metric(
            "mean_answer_relevancy",
            threshold=0.75,
            description="mean similarity of the answer sentences to the question",
        ),
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def answer_relevancy_sentence(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Similarity of the answer to the question: maximum and mean cosine similarity over the answer's sentences."""
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
