from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.rag import BUDGET, chunks_with_text, recall_of, texts_of
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, Shared, evaluator
from ragtide.evaluators.text.references import no_reference, references
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The retrieved chunks and the reference answers."""

    contexts: tuple[Chunk, ...]
    expected: tuple[str, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """What is counted."""

    unit: Literal["sentences", "statements"] = Field(
        "sentences", description="Parts of the reference: its sentences, or statements that the judge lists."
    )


def _converse(row: Inputs, shared: Shared, params: Params) -> Conversation[Outcome]:
    chunks = chunks_with_text(row.contexts)
    if isinstance(chunks, NotApplicable):
        return chunks
    given = references(row.expected)
    if not given:
        return no_reference(row.expected)
    found = yield from recall_of(given, texts_of(chunks), params.unit, shared)
    return found if isinstance(found, NotApplicable) else Scored({"context_recall": found})


@evaluator(
    "context_recall",
    version=1,
    domain="retrieval",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "context_recall",
            threshold=0.75,
            primary=True,
            description="share of the reference's sentences that the contexts support",
        )
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(("statements", "support"), _converse),
    budget=BUDGET,
)
def context_recall(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Share of the reference's sentences that the contexts support, by a judge's verdict. The best reference counts."""
    return shared.judge(_converse(row, shared, params))
