"""Relevance of retrieved chunks to the question."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragtide.evaluators.outcome import Evidence, NotApplicable
from ragtide.evaluators.spec import Sentence, Shared
from ragtide.evaluators.text.recorded_chunks import recorded_chunks
from ragtide.evaluators.text.similarity import similarities
from ragtide.evaluators.trace import Chunk


class Relevance(NamedTuple):
    """Relevance of a chunk, from 0 to 1: that of its `best` sentence, 0 if it has no sentences."""

    chunk: Chunk
    score: float
    best: Sentence | None

    def evidence(self, kind: str) -> tuple[Evidence, ...]:
        """Point at the best sentence, if there is one."""
        if self.best is None:
            return ()
        return (Evidence("contexts", self.best.start, self.best.end, self.chunk.id, kind=kind, score=self.score),)


def relevance_embeds(question: str, contexts: Sequence[Chunk], shared: Shared) -> Iterator[str]:
    """Yield the texts that `relevances` will embed."""
    cut = _sentences_of_chunks(contexts, shared)
    if question.strip() and any(cut):
        yield question
        yield from (sentence.text for sentences in cut for sentence in sentences)


def relevances(question: str, contexts: tuple[Chunk, ...], shared: Shared) -> list[Relevance] | NotApplicable:
    """Return for each chunk the highest cosine similarity of its sentences to the question.

    Empty if nothing was retrieved. NotApplicable if no chunk has a sentence, or the question is blank.
    """
    if recorded_chunks(contexts) is None:
        return NotApplicable("missing_contexts")
    if not question.strip():
        return NotApplicable("empty_question")
    if not contexts:
        return []
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
    """Split each chunk into sentences."""
    return [shared.sentences(chunk.text or "") for chunk in contexts]
