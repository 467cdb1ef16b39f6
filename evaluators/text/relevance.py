"""How relevant a retrieved chunk is to the question, as every evaluator that asks takes it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragtide.evaluators.outcome import Evidence, NotApplicable
from ragtide.evaluators.spec import Sentence, Shared
from ragtide.evaluators.text.recorded_chunks import recorded_chunks
from ragtide.evaluators.text.similarity import similarities
from ragtide.evaluators.trace import Chunk


class Relevance(NamedTuple):
    """A chunk's relevance, from 0 to 1, is that of its `best` sentence; 0 where none of it can be embedded."""

    chunk: Chunk
    score: float
    best: Sentence | None

    def evidence(self, kind: str) -> tuple[Evidence, ...]:
        """Where the best sentence stands; nothing where there is none."""
        if self.best is None:
            return ()
        return (Evidence("contexts", self.best.start, self.best.end, self.chunk.id, kind=kind, score=self.score),)


def relevance_embeds(question: str, contexts: Sequence[Chunk], shared: Shared) -> Iterator[str]:
    """The texts that `relevances` will embed."""
    cut = _sentences_of_chunks(contexts, shared)
    if question.strip() and any(cut):
        yield question
        yield from (sentence.text for sentences in cut for sentence in sentences)


def relevances(question: str, contexts: tuple[Chunk, ...], shared: Shared) -> list[Relevance] | NotApplicable:
    """Of each chunk in turn the max over its sentences of their cosine similarity to the question."""
    if recorded_chunks(contexts) is None:
        return NotApplicable("missing_contexts")
    if not question.strip():
        return NotApplicable("empty_question")
    cut = _sentences_of_chunks(contexts, shared)
    if not any(cut):
        return NotApplicable("empty_contexts")
    texts = [sentence.text for sentences in cut for sentence in sentences]
    scores = similarities(shared, [question], texts)[0].tolist()
    found: list[Relevance] = []
    end = 0
    for chunk, sentences in zip(contexts, cut, strict=True):
        start, end = end, end + len(sentences)
        best = max(range(start, end), key=scores.__getitem__, default=None)
        found.append(
            Relevance(chunk, 0.0, None) if best is None else Relevance(chunk, scores[best], sentences[best - start])
        )
    return found


def _sentences_of_chunks(contexts: Sequence[Chunk], shared: Shared) -> list[tuple[Sentence, ...]]:
    """The sentences of each chunk."""
    return [shared.sentences(chunk.text or "") for chunk in contexts]
