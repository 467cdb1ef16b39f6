from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, Field

from ragtide.evaluators.models.known_models import NLI
from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Ask, Budget, Metric, ModelRef, Need, Sentence, Shared, Vectors, evaluator
from ragtide.evaluators.text.entailment import Pairs, Places, nli
from ragtide.evaluators.text.recorded_chunks import recorded_chunks
from ragtide.evaluators.trace import Chunk

MOST_ATTRIBUTED = 50  # answer sentences with attributions: evidence is stored with every record


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it should rest on."""

    answer: str
    contexts: tuple[Chunk, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """Which model tells entailment, and what it is asked."""

    model: str = Field(NLI, min_length=1, description="NLI model.")
    threshold: float = Field(0.5, ge=0, le=1, description="Least entailment of a sentence that counts as supported.")
    top_k: int = Field(
        8, ge=0, description="Context sentences asked for each answer sentence, the most similar ones; 0: all."
    )
    attributions: int = Field(3, ge=1, le=10, description="Most context sentences named for one answer sentence.")
    max_characters: int = Field(
        200_000, ge=1, description="Of all pairs of a record together; beyond it the record is too long."
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer's sentences, the context sentences that may support them, and the pairs to ask."""

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
def faithfulness_nli(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Share of the answer's sentences that an NLI model finds entailed by some context sentence, and for each of them
    the context sentences that support it best. Only the context sentences most similar to it by embedding are asked.
    """
    for row in rows:
        compared = _compare(row, shared, params)
        yield _faithful(compared, shared, params) if isinstance(compared, Comparison) else compared


def _faithful(compared: Comparison, shared: Shared, params: Params) -> Outcome:
    entailments = compared.pairs.entailments(shared, nli(params.model))
    if np.isnan(entailments).any():
        return NotApplicable("too_long")
    support = entailments.max(axis=1)
    chosen = compared.pairs.premises_of(shared)
    attributed = sorted(support.argsort(kind="stable")[:MOST_ATTRIBUTED])
    return Scored(
        {"faithfulness": float(np.mean(support >= params.threshold))},
        evidence=tuple(
            place for i in attributed for place in _attributions(compared, i, chosen[i], entailments[i], params)
        ),
    )


def _attributions(
    compared: Comparison, number: int, chosen: Places, entailments: Vectors, params: Params
) -> Iterator[Evidence]:
    """The answer's sentence, then its best support, then what else entails it."""
    sentence, support = compared.answer[number], float(entailments.max())
    kind = "supported" if support >= params.threshold else "unsupported"
    yield Evidence("answer", sentence.start, sentence.end, kind=kind, score=support)
    for rank, best in enumerate((-entailments).argsort(kind="stable")[: params.attributions]):
        chunk, source = compared.sources[chosen[best]]
        score = float(entailments[best])
        if rank == 0 or score >= params.threshold:
            yield Evidence("contexts", source.start, source.end, chunk.id, kind="support", score=score)
