"""The retriever: every sentence of the corpus as a vector, passages ranked by their best sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ragtide.evaluators.encoder import Encoder
from ragtide.evaluators.spec import Vectors
from ragtide.stream.demo.corpus import Passage


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage, its similarity to the question, and that of each of its sentences."""

    passage: Passage
    score: float
    sentence_scores: tuple[float, ...]


class Index:
    """Finds the passages nearest to a question, best first."""

    def __init__(self, passages: Sequence[Passage], encoder: Encoder) -> None:
        self.passages = tuple(passages)
        ends = np.cumsum([0, *(len(passage.sentences) for passage in self.passages)])
        self._spans = [slice(int(start), int(end)) for start, end in pairwise(ends)]
        self._starts = ends[:-1]
        self._vectors = encoder.encode([sentence for passage in self.passages for sentence in passage.sentences])

    def search(self, question: Vectors, k: int, *, shifted_by: int = 0) -> tuple[Hit, ...]:
        """The `k` nearest passages; `question` is one unit vector.

        `shifted_by` is the fault of an index whose ids no longer fit: what is found is not what is handed out.
        """
        similarities = self._vectors @ question
        best = np.maximum.reduceat(similarities, self._starts)
        hits = []
        for rank in np.argsort(-best, kind="stable")[:k]:
            number = (int(rank) + shifted_by) % len(self.passages)
            scores = tuple(float(score) for score in similarities[self._spans[number]])
            hits.append(Hit(self.passages[number], float(best[rank]), scores))
        return tuple(hits)
