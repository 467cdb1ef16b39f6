from dataclasses import dataclass

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.rag import BUDGET, chunks_with_text, faithfulness_of, texts_of
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and the retrieved chunks."""

    answer: str
    contexts: tuple[Chunk, ...]


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    chunks = chunks_with_text(row.contexts)
    if isinstance(chunks, NotApplicable):
        return chunks
    found = yield from faithfulness_of(row.answer, texts_of(chunks), shared)
    return found if isinstance(found, NotApplicable) else Scored({"faithfulness": found})


@evaluator(
    "faithfulness",
    version=1,
    domain="generation",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "faithfulness",
            threshold=0.75,
            primary=True,
            companion="support.support",
            description="share of the answer's statements that the contexts support",
        )
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(("statements", "support"), _converse),
    budget=BUDGET,
)
def faithfulness(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Share of the answer's statements, as a judge lists them, that the contexts support. A statement that the contexts
    do not speak of is not supported. An answer without statements is not applicable.
    """
    return shared.judge(_converse(row, shared, params))
