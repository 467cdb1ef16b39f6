from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, Field

from evaluators.outcome import NotApplicable, Outcome, Scored
from evaluators.recorded import recorded_texts
from evaluators.spec import Ask, Budget, Metric, ModelRef, Need, Shared, evaluator
from evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it should rest on."""

    answer: str
    contexts: tuple[Chunk, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """Which model tells consistency."""

    model: str = Field(
        "vectara/hallucination_evaluation_model",
        min_length=1,
        description="Cross-encoder with one score for (contexts, answer), 1 where the answer is consistent.",
    )

    @property
    def ref(self) -> ModelRef:
        """The model as it is asked."""
        return ModelRef(Need.CLASSIFIER, self.model)


def _ask(row: Inputs) -> Ask | NotApplicable:
    texts = recorded_texts(row.contexts)
    if texts is None:
        return NotApplicable("missing_contexts")
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    read = [text for text in texts if text.strip()]
    return ("\n".join(read), row.answer) if read else NotApplicable("empty_contexts")


def _asks(row: Inputs, shared: Shared, params: Params) -> Iterator[tuple[ModelRef, Ask]]:
    ask = _ask(row)
    if not isinstance(ask, NotApplicable):
        yield params.ref, ask


@evaluator(
    "hallucination",
    version=1,
    domain="generation",
    method="classifier",
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric("hallucination", threshold=0.75, primary=True, description="1: the contexts bear the answer out; 0: not")
    ],
    needs={Need.CLASSIFIER},
    models=lambda params: [params.ref],
    asks=_asks,
    budget=Budget(characters=100_000),
)
def hallucination(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """How consistent the answer is with the contexts, in rank order and one a line, by a cross-encoder that reads both
    at once; high is good, whatever the name says. Contexts longer than the model's window are read in several, each
    with the whole answer, and the most consistent one counts; an answer that leaves them too little room is too long.
    """
    for row in rows:
        yield _consistent(row, shared, params)


def _consistent(row: Inputs, shared: Shared, params: Params) -> Outcome:
    ask = _ask(row)
    if isinstance(ask, NotApplicable):
        return ask
    [[score]] = shared.ask(params.ref, [ask])
    return NotApplicable("too_long") if np.isnan(score) else Scored({"hallucination": float(score)})
