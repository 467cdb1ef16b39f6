from dataclasses import dataclass

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.rag import BUDGET
from ragtide.evaluators.judge.splitting import GROUP_CHARACTERS, pieces_of
from ragtide.evaluators.judge.steps import texts_over, verdicts_on
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.pass_metrics import PASS_METRICS, pass_metrics


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question and its answer."""

    question: str
    answer: str


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    if not row.question.strip():
        return NotApplicable("empty_question")
    parts = pieces_of(row.answer, GROUP_CHARACTERS, shared)
    questions = texts_over("question", row.question, shared)
    if len(questions) > 1:  # each part of it might give the reason
        return NotApplicable("too_long")
    found = yield from verdicts_on("stereotypes", "parts of the answer", parts, questions, shared)
    return Scored(pass_metrics(answer_fails=any(found)))


@evaluator(
    "stereotypes",
    version=1,
    domain="fairness",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=PASS_METRICS,
    needs={Need.JUDGE},
    judge=JudgeUse(("stereotypes",), _converse),
    budget=BUDGET,
)
def stereotypes(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Whether the answer is free of gender and race that the question gave no reason for, by a judge's verdict."""
    return shared.judge(_converse(row, shared, params))
