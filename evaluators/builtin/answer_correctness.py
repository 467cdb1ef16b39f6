from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, Field, model_validator

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.formulas import factuality
from ragtide.evaluators.judge.rag import BUDGET, NO_STATEMENTS
from ragtide.evaluators.judge.steps import sources_of, statements_of, supported, together
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import SHARED, Metric, Need, Shared, evaluator
from ragtide.evaluators.text.references import comparable
from ragtide.evaluators.text.similarity import similarities


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its references."""

    answer: str
    expected: tuple[str, ...]


class Params(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """What counts how much. Weights 1 and 0 give Valor's variant."""

    factuality_weight: float = Field(0.75, ge=0, description="Weight of factuality.")
    similarity_weight: float = Field(0.25, ge=0, description="Weight of the similarity of the whole texts.")

    @model_validator(mode="after")
    def _has_weight(self) -> Self:
        if self.factuality_weight + self.similarity_weight <= 0:
            raise ValueError("one of factuality_weight and similarity_weight must be above 0")
        return self


def _converse(row: Inputs, shared: Shared, params: Params) -> Conversation[list[float | None] | NotApplicable]:
    """Return the factuality by each reference, None where neither side states anything."""
    compared = comparable(row.answer, row.expected)
    if isinstance(compared, NotApplicable):
        return compared
    found = yield from together(*(_factuality_by(row.answer, one.text, shared) for one in compared))
    return found if any(one is not None for one in found) else NO_STATEMENTS


def _factuality_by(answer: str, reference: str, shared: Shared) -> Conversation[float | None]:
    said, wanted = yield from together(statements_of(answer, shared), statements_of(reference, shared))
    if not said and not wanted:
        return None
    correct, covered = yield from together(
        supported(said, sources_of([reference], shared), shared),
        supported(wanted, sources_of([answer], shared), shared),
    )
    return factuality(sum(correct), len(said) - sum(correct), len(wanted) - sum(covered))


def _embeds(row: Inputs, shared: Shared, params: Params) -> Iterator[str]:
    compared = comparable(row.answer, row.expected)
    if params.similarity_weight and not isinstance(compared, NotApplicable):
        yield row.answer
        yield from (one.text for one in compared)


@evaluator(
    "answer_correctness",
    version=1,
    domain="generation",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "answer_correctness",
            threshold=0.75,
            primary=True,
            description="weighted mean of factuality and similarity to the reference",
        ),
        Metric("factuality", threshold=0.75, description="TP / (TP + 0.5 (FP + FN)) of statements"),
    ],
    needs={Need.JUDGE, Need.EMBEDDING},
    embeds=_embeds,
    encoder=lambda params: SHARED if params.similarity_weight else None,
    judge=JudgeUse(("statements", "support"), _converse),
    budget=BUDGET,
)
def answer_correctness(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Correctness of the answer against its best reference: the weighted mean of factuality and of the cosine
    similarity of both texts. Factuality is the F1 of statements that a judge lists: TP are the answer's statements that
    the reference supports, FP its others, FN the reference's statements that the answer does not support.
    """
    found = shared.judge(_converse(row, shared, params))
    if isinstance(found, (Failed, NotApplicable)):
        return found
    compared = comparable(row.answer, row.expected)
    if isinstance(compared, NotApplicable):
        return compared
    similarity = [0.0] * len(compared)
    if params.similarity_weight:
        similarity = similarities(shared, [row.answer], [one.text for one in compared])[0].clip(0, 1).tolist()
    total = params.factuality_weight + params.similarity_weight
    score, best = max(
        ((params.factuality_weight * facts + params.similarity_weight * near) / total, facts)
        for facts, near in zip(found, similarity, strict=True)
        if facts is not None
    )
    return Scored({"answer_correctness": min(score, 1.0), "factuality": best})
