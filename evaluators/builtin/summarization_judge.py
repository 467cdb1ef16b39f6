from dataclasses import dataclass

from ragtide.evaluators.judge.calls import Conversation, JudgeCall, JudgeUse, Section
from ragtide.evaluators.judge.replies import Verdicts
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.pass_metrics import PASS_METRICS, pass_metrics
from ragtide.evaluators.text.references import comparable


@dataclass(frozen=True, slots=True)
class Inputs:
    """The summary and its references."""

    answer: str
    expected: tuple[str, ...]


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    compared = comparable(row.answer, row.expected)
    if isinstance(compared, NotApplicable):
        return compared
    summaries = Section("summaries", (row.answer,))
    replies = yield [
        JudgeCall("summary_quality", (Section("reference", one.text), summaries), Verdicts, (1,)) for one in compared
    ]
    return Scored(pass_metrics(answer_fails=not any(reply.in_order[0] for reply in replies)))


@evaluator(
    "summarization_judge",
    version=1,
    domain="summarization",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=PASS_METRICS,
    needs={Need.JUDGE},
    judge=JudgeUse(("summary_quality",), _converse),
    tasks=["summarization"],
    budget=Budget(characters=100_000, items=100),  # a summary is judged as a whole
)
def summarization_judge(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Whether the summary is good against a reference summary, by a judge's verdict. One of several references is
    enough.
    """
    return shared.judge(_converse(row, shared, params))
