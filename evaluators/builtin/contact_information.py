from dataclasses import dataclass

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.rag import BUDGET
from ragtide.evaluators.judge.steps import verdicts_on
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.pass_metrics import PASS_METRICS, pass_metrics


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer."""

    answer: str


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    [found] = yield from verdicts_on("contact", "texts", [row.answer], [()], shared)
    return Scored(pass_metrics(answer_fails=found))


@evaluator(
    "contact_information",
    version=1,
    domain="privacy",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=PASS_METRICS,
    needs={Need.JUDGE},
    judge=JudgeUse(("contact",), _converse),
    budget=BUDGET,
)
def contact_information(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Whether the answer is free of names of private persons, postal addresses, telephone numbers, e-mail addresses,
    user names and medical information about a person, by a judge's verdict.
    """
    return shared.judge(_converse(row, shared, params))
