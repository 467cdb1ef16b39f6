"""An encoder without a model, for tests only."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from ragtide.evaluators.spec import Vectors

_WORD = re.compile(r"\w+")


class HashingEncoder:
    """Texts that share words get similar vectors. A word has the same random direction in every process."""

    def __init__(self, dimension: int = 64) -> None:
        self.revision = f"hashing-{dimension}@1"
        self.dimension = dimension

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, one row per text, in order."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            total = self._direction("")  # so that a text without words has a vector too
            for word in _WORD.findall(text.lower()):
                total = total + 4 * self._direction(word)
            vectors[row] = total / np.linalg.norm(total)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Count the words of all texts."""
        return sum(len(_WORD.findall(text)) for text in texts)

    def _direction(self, word: str) -> Vectors:
        seed = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return np.random.default_rng(int.from_bytes(seed, "little")).standard_normal(self.dimension, np.float32)
