from dataclasses import dataclass

from ragtide.evaluators.judge.calls import Conversation, JudgeCall, JudgeUse, Section
from ragtide.evaluators.judge.replies import Grade
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Shared, evaluator

LOWEST, HIGHEST = 1, 5


@dataclass(frozen=True, slots=True)
class Inputs:
    """The text and its summary."""

    question: str
    answer: str


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    if not row.question.strip():
        return NotApplicable("empty_question")
    sections = (Section("text", row.question), Section("summary", row.answer))
    [reply] = yield [JudgeCall("summary_coherence", sections, Grade, (LOWEST, HIGHEST))]
    return Scored({"summary_coherence": float(reply.grade)})


@evaluator(
    "summary_coherence",
    version=1,
    domain="summarization",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "summary_coherence",
            low=LOWEST,
            high=HIGHEST,
            threshold=3,
            primary=True,
            description="grade for key points and logical coherence",
        )
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(("summary_coherence",), _converse),
    tasks=["summarization"],
    budget=Budget(characters=100_000),  # text and summary are read as a whole
)
def summary_coherence(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """A judge's grade of the summary, from 1 to 5, for key points and logical coherence. The question is the text that
    was to be summarised.
    """
    return shared.judge(_converse(row, shared, params))
