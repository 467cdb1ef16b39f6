import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Ask, Budget, Metric, ModelRef, Need, Sentence, Shared, evaluator
from ragtide.evaluators.text.recorded_chunks import recorded_chunks, recorded_texts
from ragtide.evaluators.trace import Chunk

MOST_COMPARED = 20_000  # sentences with chunks, by their words
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it should rest on."""

    answer: str
    contexts: tuple[Chunk, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """Which model tells consistency, and where it looks."""

    model: str = Field(
        "vectara/hallucination_evaluation_model",
        min_length=1,
        description="Cross-encoder with one score for (contexts, answer), 1 where the answer is consistent.",
    )
    locate: bool = Field(
        True, description="Score sentences with their nearest chunk too and point at the weakest; false: half the work."
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


class SentenceInChunk(NamedTuple):
    """A sentence of the answer, and the chunk that has the most of its words."""

    sentence: Sentence
    chunk: Chunk
    shared_words: float  # of the sentence's

    @property
    def ask(self) -> Ask:
        """The two as they are asked."""
        return self.chunk.text or "", self.sentence.text


def _sentences_in_chunks(row: Inputs, shared: Shared) -> list[SentenceInChunk]:
    """Sentences of the answer, first those with the least of their words in any chunk: as many as together are no
    longer than contexts and answer, so that asking them costs no more than asking the whole.
    """
    chunks = [chunk for chunk in recorded_chunks(row.contexts) or () if chunk.text and chunk.text.strip()]
    sentences = shared.sentences(row.answer)
    if not chunks or len(chunks) * len(sentences) > MOST_COMPARED:
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
    if np.isnan(score):
        return NotApplicable("too_long")
    evidence = _weakest(row, shared, params) if params.locate else ()
    return Scored({"hallucination": float(score)}, evidence=evidence)


def _weakest(row: Inputs, shared: Shared, params: Params) -> tuple[Evidence, ...]:
    """The least consistent of the sentences that were asked, and the chunk that it was asked with."""
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
