"""The work that evaluators share: done once, for all of them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from evaluators.encoder import Encoder
from evaluators.errors import Unavailable
from evaluators.sentences import split
from evaluators.settings import CACHE_BYTES
from evaluators.spec import Made, Sentence, Vectors
from evaluators.vector_cache import VectorCache


class Resources:
    """What outlives a micro-batch: the encoder and the vectors it gave. One per process, used from any thread."""

    def __init__(self, encoder: Encoder | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        self.encoder = encoder
        self.cache = VectorCache(cache_bytes)

    def batch(self) -> "Batch":
        """The view of one micro-batch; used by one thread, then dropped."""
        return Batch(self)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of distinct texts; those that the cache has not come from one encoder call."""
        if self.encoder is None:
            raise Unavailable("no encoder is loaded; an evaluator that embeds must declare Need.EMBEDDING")
        known = self.cache.get(texts)
        missing = [text for text, vector in zip(texts, known, strict=True) if vector is None]
        fresh = iter(())
        if missing:
            encoded = self.encoder.encode(missing)
            self.cache.put(missing, encoded)
            fresh = iter(encoded)
        rows = [next(fresh) if vector is None else vector for vector in known]
        return np.array(rows, np.float32).reshape(len(rows), self.encoder.dimension)


class Batch:
    """The `Shared` of one micro-batch: remembers every sentence and vector for as long as it lives."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._made: defaultdict[Callable[[str], Any], dict[str, Any]] = defaultdict(dict)
        self._rows: dict[str, int] = {}
        self._matrix: Vectors | None = None

    def sentences(self, text: str) -> tuple[Sentence, ...]:
        """The text's sentences by the one shared splitter; never an empty or letterless one."""
        return self.once(split, text)

    def once(self, make: Callable[[str], Made], text: str) -> Made:
        """`make(text)`, made once per micro-batch: `make` is a pure function of a module, its result is not changed."""
        known = self._made[make]
        if text not in known:
            known[text] = make(text)
        made: Made = known[text]
        return made

    def prefetch(self, texts: Iterable[str]) -> None:
        """Have the vectors of all texts at hand, with at most one encoder call."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if not missing:
            return
        vectors = self._resources.vectors(missing)
        first = len(self._rows)
        self._matrix = vectors if self._matrix is None else np.concatenate((self._matrix, vectors))
        self._rows.update((text, first + i) for i, text in enumerate(missing))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, one row per text, in order: float32 [len(texts), dimension]; the caller's own copy."""
        self.prefetch(texts)
        if self._matrix is None:
            dimension = self._resources.encoder.dimension if self._resources.encoder else 0
            return np.zeros((0, dimension), np.float32)
        return self._matrix[[self._rows[text] for text in texts]]

    def tokens(self, text: str) -> int:
        """Word pieces of the text; words, where there is no encoder to ask."""
        encoder = self._resources.encoder
        return encoder.count_tokens([text]) if encoder else len(text.split())
