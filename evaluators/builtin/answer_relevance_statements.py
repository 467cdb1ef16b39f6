from dataclasses import dataclass

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.formulas import share
from ragtide.evaluators.judge.rag import BUDGET, NO_STATEMENTS
from ragtide.evaluators.judge.steps import statements_of, texts_over, verdicts_on
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, NoParams, Shared, evaluator


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question and its answer."""

    question: str
    answer: str


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    if not row.question.strip():
        return NotApplicable("empty_question")
    statements = yield from statements_of(row.answer, shared)
    if not statements:
        return NO_STATEMENTS
    asked = texts_over("question", row.question, shared)
    verdicts = yield from verdicts_on("relevance", "statements", statements, asked, shared)
    return Scored({"answer_relevance": share(verdicts)})


@evaluator(
    "answer_relevance_statements",
    version=1,
    domain="generation",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "answer_relevance",
            threshold=0.75,
            primary=True,
            description="share of the answer's statements that are relevant to the question",
        )
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(("statements", "relevance"), _converse),
    budget=BUDGET,
)
def answer_relevance_statements(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Share of the answer's statements, as a judge lists them, that it finds relevant to the question. An answer
    without statements is not applicable.
    """
    return shared.judge(_converse(row, shared, params))
