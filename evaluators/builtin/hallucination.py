import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Ask, Budget, Metric, ModelRef, Need, Sentence, Shared, evaluator
from ragtide.evaluators.text.recorded_chunks import recorded_chunks, recorded_texts
from ragtide.evaluators.trace import Chunk

MAX_COMPARISONS = 20_000  # sentences x chunks, compared by their words
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and the retrieved chunks."""

    answer: str
    contexts: tuple[Chunk, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """The cross-encoder, and whether it also scores sentences."""

    model: str = Field(
        "vectara/hallucination_evaluation_model",
        min_length=1,
        description="Cross-encoder that scores (contexts, answer). 1 means the answer is consistent.",
    )
    locate: bool = Field(
        True,
        description="Also score sentences with their nearest chunk and report the weakest. Takes about twice the time.",
    )

    @property
    def ref(self) -> ModelRef:
        """The cross-encoder."""
        return ModelRef(Need.CLASSIFIER, self.model)


def _ask(row: Inputs) -> Ask | NotApplicable:
    texts = recorded_texts(row.contexts)
    if texts is None:
        return NotApplicable("missing_contexts")
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    read = [text for text in texts if text.strip()]
    return ("\n".join(read), row.answer) if read else NotApplicable("empty_contexts")


class SentenceInChunk(NamedTuple):
    """A sentence of the answer, and the chunk with the most of its words."""

    sentence: Sentence
    chunk: Chunk
    shared_words: float  # share of the words of the sentence

    @property
    def ask(self) -> Ask:
        """The pair to score."""
        return self.chunk.text or "", self.sentence.text


def _sentences_in_chunks(row: Inputs, shared: Shared) -> list[SentenceInChunk]:
    """Select sentences of the answer, those with the fewest words in any chunk first. Together they are no longer than
    contexts and answer, so that scoring them costs no more than scoring the whole.
    """
    chunks = [chunk for chunk in recorded_chunks(row.contexts) or () if chunk.text and chunk.text.strip()]
    sentences = shared.sentences(row.answer)
    if not chunks or len(chunks) * len(sentences) > MAX_COMPARISONS:
        return []
    found = []
    for sentence in sentences:
        own = shared.once(_words, sentence.text)
        shares = [len(own & shared.once(_words, chunk.text or "")) / max(1, len(own)) for chunk in chunks]
        found.append(SentenceInChunk(sentence, chunks[shares.index(max(shares))], max(shares)))
    found.sort(key=lambda one: one.shared_words)
    spent = accumulate(sum(map(len, one.ask)) for one in found)
    whole = sum(len(chunk.text or "") for chunk in chunks) + len(row.answer)
    return [one for one, characters in zip(found, spent, strict=True) if characters <= whole]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _asks(row: Inputs, shared: Shared, params: Params) -> Iterator[tuple[ModelRef, Ask]]:
    ask = _ask(row)
    if not isinstance(ask, NotApplicable):
        yield params.ref, ask
        if params.locate:
            yield from ((params.ref, one.ask) for one in _sentences_in_chunks(row, shared))


@evaluator(
    "hallucination",
    version=2,
    domain="generation",
    method="classifier",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "hallucination", threshold=0.75, primary=True, description="1 if the contexts support the answer, 0 if not"
        )
    ],
    needs={Need.CLASSIFIER},
    models=lambda params: [params.ref],
    asks=_asks,
    budget=Budget(characters=100_000),
)
def hallucination(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Consistency of the answer with the contexts, by a cross-encoder that reads both at once. High is good, in spite
    of the name. The contexts are in rank order, one per line. Contexts longer than the model's window are read in
    several windows, each with the whole answer, and the highest score counts. The record is too_long if the answer
    leaves too little room for contexts.
    """
    ask = _ask(row)
    if isinstance(ask, NotApplicable):
        return ask
    [[score]] = shared.ask(params.ref, [ask])
    if np.isnan(score):
        return NotApplicable("too_long")
    evidence = _weakest(row, shared, params) if params.locate else ()
    return Scored({"hallucination": float(score)}, evidence=evidence)


def _weakest(row: Inputs, shared: Shared, params: Params) -> tuple[Evidence, ...]:
    """Point at the least consistent sentence and its chunk."""
    located = _sentences_in_chunks(row, shared)
    scores = shared.ask(params.ref, [one.ask for one in located])[:, 0]
    if np.isnan(scores).all():
        return ()
    weakest = int(np.nanargmin(scores))
    (sentence, chunk, _), score = located[weakest], float(scores[weakest])
    return (
        Evidence("answer", sentence.start, sentence.end, kind="weakest", score=score),
        Evidence("contexts", 0, len(chunk.text or ""), chunk.id, kind="nearest_chunk", score=score),
    )
