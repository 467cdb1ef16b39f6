from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, Field

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.rag import BUDGET, questions_for, relevancy_of
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, Shared, evaluator


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question and its answer."""

    question: str
    answer: str


class Params(BaseModel, frozen=True, extra="forbid"):
    """How many questions are compared."""

    questions: int = Field(3, ge=1, le=20, description="Questions that the judge writes for an answer.")


def _converse(row: Inputs, shared: Shared, params: Params) -> Conversation[list[str] | NotApplicable]:
    if not row.question.strip():
        return NotApplicable("empty_question")
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    return (yield from questions_for(row.answer, params.questions, shared))


def _embeds(row: Inputs, shared: Shared, params: Params) -> Iterator[str]:
    questions = shared.judge(_converse(row, shared, params))
    if isinstance(questions, list):
        yield row.question
        yield from questions


@evaluator(
    "answer_relevancy",
    version=1,
    domain="generation",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "answer_relevancy",
            low=-1.0,
            threshold=0.75,
            primary=True,
            description="mean similarity of the question to questions that the answer would answer",
        )
    ],
    needs={Need.JUDGE, Need.EMBEDDING},
    embeds=_embeds,
    judge=JudgeUse(("questions",), _converse),
    budget=BUDGET,
)
def answer_relevancy(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Mean cosine similarity of the question to questions that a judge writes for the answer: those that the answer
    would answer. For a long answer it writes questions piece by piece.
    """
    questions = shared.judge(_converse(row, shared, params))
    if isinstance(questions, (Failed, NotApplicable)):
        return questions
    return Scored({"answer_relevancy": relevancy_of(row.question, questions, shared)})
