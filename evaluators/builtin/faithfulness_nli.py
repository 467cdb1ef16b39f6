from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, Field

from ragtide.evaluators.models.known_models import NLI
from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Ask, Budget, Metric, ModelRef, Need, Sentence, Shared, Vectors, evaluator
from ragtide.evaluators.text.entailment import Pairs, Places, nli
from ragtide.evaluators.text.recorded_chunks import recorded_chunks
from ragtide.evaluators.trace import Chunk

MAX_ATTRIBUTED = 50  # answer sentences with attributions: evidence is stored with every record


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and the retrieved chunks."""

    answer: str
    contexts: tuple[Chunk, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """The NLI model, and the pairs it scores."""

    model: str = Field(NLI, min_length=1, description="NLI model.")
    threshold: float = Field(0.5, ge=0, le=1, description="Minimum entailment probability of a supported sentence.")
    top_k: int = Field(
        8,
        ge=0,
        description="Context sentences compared with each answer sentence, the most similar first. 0 means all.",
    )
    attributions: int = Field(3, ge=1, le=10, description="Maximum context sentences reported for one answer sentence.")
    max_characters: int = Field(
        200_000, ge=1, description="Maximum characters of all pairs of a record. Beyond it, the record is too_long."
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer sentences, the context sentences, and the pairs to score."""

    answer: tuple[Sentence, ...]
    sources: tuple[tuple[Chunk, Sentence], ...]
    pairs: Pairs


def _compare(row: Inputs, shared: Shared, params: Params) -> Comparison | NotApplicable:
    chunks = recorded_chunks(row.contexts)
    if chunks is None:
        return NotApplicable("missing_contexts")
    answer = shared.sentences(row.answer)
    if not answer:
        return NotApplicable("too_short")
    sources = tuple((chunk, sentence) for chunk in chunks for sentence in shared.sentences(chunk.text or ""))
    if not sources:
        return NotApplicable("empty_contexts")
    pairs = Pairs(tuple(s.text for s in answer), tuple(s.text for _, s in sources), params.top_k)
    return (
        NotApplicable("too_long") if pairs.characters() > params.max_characters else Comparison(answer, sources, pairs)
    )


def _embeds(row: Inputs, shared: Shared, params: Params) -> Iterator[str]:
    compared = _compare(row, shared, params)
    if isinstance(compared, Comparison):
        yield from compared.pairs.embeds()


def _asks(row: Inputs, shared: Shared, params: Params) -> Iterator[tuple[ModelRef, Ask]]:
    compared = _compare(row, shared, params)
    if isinstance(compared, Comparison):
        yield from ((nli(params.model), ask) for ask in compared.pairs.asks(shared))


@evaluator(
    "faithfulness_nli",
    version=1,
    domain="generation",
    method="nli",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric("faithfulness", threshold=0.75, primary=True, description="share of answer sentences that are supported")
    ],
    needs={Need.NLI, Need.EMBEDDING},
    embeds=_embeds,
    models=lambda params: [nli(params.model)],
    asks=_asks,
    budget=Budget(characters=200_000, sentences=2_000),
)
def faithfulness_nli(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Share of the answer's sentences that an NLI model finds entailed by a context sentence, with the context
    sentences that support each best. Only the context sentences with the most similar embeddings are compared.
    """
    compared = _compare(row, shared, params)
    if isinstance(compared, NotApplicable):
        return compared
    entailments = compared.pairs.entailments(shared, nli(params.model))
    if np.isnan(entailments).any():
        return NotApplicable("too_long")
    support = entailments.max(axis=1)
    chosen = compared.pairs.premises_of(shared)
    attributed = sorted(support.argsort(kind="stable")[:MAX_ATTRIBUTED])
    return Scored(
        {"faithfulness": float(np.mean(support >= params.threshold))},
        evidence=tuple(
            place for i in attributed for place in _attributions(compared, i, chosen[i], entailments[i], params)
        ),
    )


def _attributions(
    compared: Comparison, number: int, chosen: Places, entailments: Vectors, params: Params
) -> Iterator[Evidence]:
    """Yield the answer sentence, its best support, then other context sentences that entail it."""
    sentence, support = compared.answer[number], float(entailments.max())
    kind = "supported" if support >= params.threshold else "unsupported"
    yield Evidence("answer", sentence.start, sentence.end, kind=kind, score=support)
    for rank, best in enumerate((-entailments).argsort(kind="stable")[: params.attributions]):
        chunk, source = compared.sources[chosen[best]]
        score = float(entailments[best])
        if rank == 0 or score >= params.threshold:
            yield Evidence("contexts", source.start, source.end, chunk.id, kind="support", score=score)
