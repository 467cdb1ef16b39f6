from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import SHARED, Ask, Budget, Metric, ModelRef, Need, Shared, evaluator
from ragtide.evaluators.text.references import comparable, comparable_texts, nearest, pairs_too_long
from ragtide.evaluators.text.similarity import similarities


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its references."""

    answer: str
    expected: tuple[str, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """How two texts are compared."""

    cross_encoder: str | None = Field(
        None,
        min_length=1,
        description="Cross-encoder that scores (answer, reference), such as cross-encoder/stsb-roberta-base. If unset, "
        "the cosine similarity of the embeddings.",
    )

    @property
    def ref(self) -> ModelRef | None:
        """The cross-encoder, if set."""
        return None if self.cross_encoder is None else ModelRef(Need.CLASSIFIER, self.cross_encoder)


def _embeds(row: Inputs, shared: Shared, params: Params) -> Iterator[str]:
    if params.ref is None:
        yield from comparable_texts(row.answer, row.expected)


def _asks(row: Inputs, shared: Shared, params: Params) -> Iterator[tuple[ModelRef, Ask]]:
    if params.ref is not None and not pairs_too_long(row.answer, row.expected):
        for text in comparable_texts(row.answer, row.expected)[1:]:
            yield params.ref, (row.answer, text)


@evaluator(
    "answer_semantic_similarity",
    version=2,
    domain="generation",
    method="embedding",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric("answer_similarity", threshold=0.75, primary=True, description="similarity to the nearest reference")
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    encoder=lambda params: SHARED if params.ref is None else None,
    models=lambda params: [] if params.ref is None else [params.ref],
    asks=_asks,
    budget=Budget(characters=500_000, sentences=2_000),
)
def answer_semantic_similarity(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Similarity of the whole answer to the nearest reference: the cosine similarity of their embeddings, or the score
    of the configured cross-encoder.
    """
    compared = comparable(row.answer, row.expected)
    if isinstance(compared, NotApplicable):
        return compared
    if params.ref is not None and pairs_too_long(row.answer, row.expected):
        return NotApplicable("too_long")
    texts = [reference.text for reference in compared]
    if params.ref is None:
        [similarity] = similarities(shared, [row.answer], texts)
    else:
        similarity = shared.ask(params.ref, [(row.answer, text) for text in texts])[:, 0]
    if np.isnan(similarity).any():  # a reference that is too long to be read could be the nearest
        return NotApplicable("too_long")
    found = nearest(compared, similarity)
    return Scored({"answer_similarity": found.score}, evidence=(found.evidence,))
