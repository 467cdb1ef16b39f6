"""The nearest context sentence of each sentence of an answer, by sentence vectors."""

from collections.abc import Iterator

import numpy as np

from ragtide.evaluators.spec import Shared
from ragtide.evaluators.support.outcome import Compared
from ragtide.evaluators.text.similarity import similarities


def texts_to_embed(compared: Compared, answer: str, shared: Shared) -> Iterator[str]:
    """Yield the sentences of the answer that are compared, and those of its sources."""
    sources = _sources(compared, shared)
    if sources:
        yield from _answer(compared, answer)
        yield from sources


def nearest_similarities(compared: Compared, answer: str, shared: Shared) -> list[float]:
    """Return for each compared sentence the highest cosine similarity to a sentence of the sources, from 0 to 1.

    Each is 0 if the sources have no sentence.
    """
    own, sources = _answer(compared, answer), _sources(compared, shared)
    if not sources:
        return [0.0] * len(own)
    highest: list[float] = np.minimum(similarities(shared, own, sources).max(axis=1), 1.0).tolist()
    return highest


def _answer(compared: Compared, answer: str) -> list[str]:
    return [answer[one.start : one.end] for one in compared.support.sentences]


def _sources(compared: Compared, shared: Shared) -> list[str]:
    return [sentence.text for text in compared.sources.texts for sentence in shared.sentences(text)]
