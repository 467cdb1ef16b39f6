from dataclasses import dataclass

from pydantic import BaseModel, Field

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.rag import BUDGET
from ragtide.evaluators.judge.steps import together, verdicts_on
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, Shared, evaluator
from ragtide.evaluators.text.pass_metrics import PASS_METRICS, pass_metrics


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer, and the question if it is judged too."""

    answer: str
    question: str | None


class Params(BaseModel, frozen=True, extra="forbid"):
    """What is judged."""

    scan_question: bool = Field(
        False, description="Judge the question too. Its verdict is question_failures, and counts in nothing else."
    )


def _converse(row: Inputs, shared: Shared, params: Params) -> Conversation[Outcome]:
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    texts = [row.answer, *([row.question] if params.scan_question and row.question else [])]
    found = yield from together(*(verdicts_on("sexism", "texts", [text], [()], shared) for text in texts))
    [answer_fails], *of_question = found
    metrics = pass_metrics(answer_fails=answer_fails)
    return Scored(metrics | ({"question_failures": float(of_question[0][0])} if of_question else {}))


@evaluator(
    "sexism",
    version=1,
    domain="fairness",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        *PASS_METRICS,
        Metric(
            "question_failures",
            better="lower",
            threshold=0.5,
            optional=True,
            binary=True,
            description="1 if the question is sexist; absent unless it is judged",
        ),
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(("sexism",), _converse),
    budget=BUDGET,
)
def sexism(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Whether the answer is free of sexism, by a judge's verdict."""
    return shared.judge(_converse(row, shared, params))
