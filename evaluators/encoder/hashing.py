"""An encoder without a model: for tests of evaluators, never for scores."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from ragtide.evaluators.spec import Vectors

_WORD = re.compile(r"\w+")


class HashingEncoder:
    """Texts that share words get near vectors, the same in every process; every word has a fixed random direction."""

    def __init__(self, dimension: int = 64) -> None:
        self.revision = f"hashing-{dimension}@1"
        self.dimension = dimension

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, one row per text, in order."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            total = self._direction("")  # so that a text without words has a vector too
            for word in _WORD.findall(text.lower()):
                total = total + 4 * self._direction(word)
            vectors[row] = total / np.linalg.norm(total)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Words of all texts together."""
        return sum(len(_WORD.findall(text)) for text in texts)

    def _direction(self, word: str) -> Vectors:
        seed = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return np.random.default_rng(int.from_bytes(seed, "little")).standard_normal(self.dimension, np.float32)
