from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.formulas import harmonic_mean, ranked_precision
from ragtide.evaluators.judge.rag import (
    BUDGET,
    chunks_with_text,
    faithfulness_of,
    questions_for,
    readings_for,
    recall_of,
    relevancy_of,
    texts_of,
)
from ragtide.evaluators.judge.steps import together
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.references import no_reference, references
from ragtide.evaluators.trace import Chunk

QUESTIONS = 3  # the default of answer_relevancy, so that both make the same calls


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question, its answer, the retrieved chunks in rank order, and the reference answers."""

    question: str
    answer: str
    contexts: tuple[Chunk, ...]
    expected: tuple[str, ...]


class Parts(NamedTuple):
    """The three parts that need no embedding, and the questions that the answer would answer."""

    faithfulness: float
    context_precision: float
    context_recall: float
    questions: list[str]


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Parts | NotApplicable]:
    chunks = chunks_with_text(row.contexts)
    if isinstance(chunks, NotApplicable):
        return chunks
    if not row.question.strip():
        return NotApplicable("empty_question")
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    given, texts = references(row.expected), texts_of(chunks)
    if not given:
        return no_reference(row.expected)
    faithful, questions, readings, recall = yield from together(
        faithfulness_of(row.answer, texts, shared),
        questions_for(row.answer, QUESTIONS, shared),
        readings_for(row.question, given, texts, shared),
        recall_of(given, texts, "sentences", shared),
    )
    for part in (faithful, recall):
        if isinstance(part, NotApplicable):
            return part
    return Parts(faithful, ranked_precision([one.verdict for one in readings]), recall, questions)


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    parts = shared.judge(_converse(row, shared, params))
    if isinstance(parts, Parts):
        yield row.question
        yield from parts.questions


@evaluator(
    "ragas",
    version=1,
    domain="generation",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "ragas",
            threshold=0.75,
            primary=True,
            companion="support.support",
            description="harmonic mean of faithfulness, answer relevancy, context precision and context recall",
        )
    ],
    needs={Need.JUDGE, Need.EMBEDDING},
    embeds=_embeds,
    judge=JudgeUse(("statements", "support", "questions", "chunk_use"), _converse),
    budget=BUDGET,
)
def ragas(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Harmonic mean of faithfulness, answer_relevancy, context_precision and context_recall with their default
    parameters; 0 if one of them is 0 or less, not applicable if one of them is. It makes no calls of its own where
    these evaluators run.
    """
    parts = shared.judge(_converse(row, shared, params))
    if isinstance(parts, (Failed, NotApplicable)):
        return parts
    relevancy = relevancy_of(row.question, parts.questions, shared)
    score = harmonic_mean([parts.faithfulness, relevancy, parts.context_precision, parts.context_recall])
    return Scored({"ragas": min(score, 1.0)})
