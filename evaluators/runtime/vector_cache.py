"""Caches vectors between micro-batches, in bounded memory: retrieved chunks repeat."""

import hashlib
from collections.abc import Sequence
from threading import Lock

import numpy as np

from ragtide.evaluators.spec import Vectors

_OVERHEAD = 350  # bytes of key, array header and dictionary entry, measured with CPython 3.11 and numpy 2


class VectorCache:
    """A least-recently-used cache of vectors by a 128-bit hash of the text, within `limit_bytes`. Thread-safe."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._vectors: dict[bytes, Vectors] = {}  # oldest use first
        self._lock = Lock()
        self.size_bytes = 0

    def get(self, texts: Sequence[str]) -> list[Vectors | None]:
        """Return the vector of each text, or None. Do not write to them."""
        keys = [_key(text) for text in texts]
        found: list[Vectors | None] = []
        with self._lock:
            for key in keys:
                vector = self._vectors.pop(key, None)
                if vector is not None:
                    self._vectors[key] = vector
                found.append(vector)
        return found

    def put(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Add one row per text, and evict the least recently used."""
        keys = [_key(text) for text in texts]
        with self._lock:
            for key, vector in zip(keys, vectors, strict=True):
                replaced = self._vectors.pop(key, None)
                if replaced is not None:
                    self.size_bytes -= replaced.nbytes + _OVERHEAD
                self._vectors[key] = np.array(vector, np.float32)  # a copy: a row would keep its whole batch alive
                self.size_bytes += vector.nbytes + _OVERHEAD
            while self.size_bytes > self.limit_bytes:
                oldest = next(iter(self._vectors))
                self.size_bytes -= self._vectors.pop(oldest).nbytes + _OVERHEAD

    def __len__(self) -> int:
        return len(self._vectors)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
