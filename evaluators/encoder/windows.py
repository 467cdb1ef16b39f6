"""Encodes texts of any length in windows of tokens, batched by length to reduce padding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.runtime.batches import BatchRunner, Window, in_batches, split_evenly
from ragtide.evaluators.spec import Vectors
from ragtide.evaluators.text.surrogates import replace_surrogates


@dataclass(frozen=True, slots=True)
class Frame:
    """Special tokens around a window ([CLS] and [SEP] for BERT), and its maximum length with them."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    max_tokens: int

    @property
    def room(self) -> int:
        """Tokens that fit between the special tokens."""
        return self.max_tokens - len(self.before) - len(self.after)


class Backend(BatchRunner, Protocol):
    """The part of an encoder that depends on the runtime: it runs batches (to unit vectors) and tokenises."""

    dimension: int
    frame: Frame

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise one or more texts, whole and without special tokens. Thread-safe."""
        ...


class WindowedEncoder:
    """An `Encoder` over a `Backend`. A text longer than the model's window is never cut.

    Its tokens are split evenly into as few windows as possible. Its vector is the normalised mean of theirs, so that
    every part of the text has equal weight. A text that fits has the model's own vector.
    """

    def __init__(self, revision: str, backend: Backend, runtime: str) -> None:
        """`runtime` is the name of the backend in settings."""
        self.revision = revision
        self.runtime = runtime
        self.dimension = backend.dimension
        self._backend = backend

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, one row per text, in order."""
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        frame = self._backend.frame
        windows, owners = [], []
        for owner, pieces in enumerate(self._backend.tokenize([replace_surrogates(text) for text in texts])):
            for window in split_evenly(pieces, frame.room):
                windows.append(Window([*frame.before, *window, *frame.after]))
                owners.append(owner)
        vectors = in_batches(self._backend, windows)
        return vectors if len(windows) == len(texts) else _means(vectors, np.array(owners), len(texts))

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Count the tokens of all texts, without special tokens."""
        return sum(map(len, self._backend.tokenize([replace_surrogates(text) for text in texts]))) if texts else 0


def _means(vectors: Vectors, owners: npt.NDArray[np.int64], texts: int) -> Vectors:
    sums = np.zeros((texts, vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    first = vectors[np.searchsorted(owners, np.arange(texts))]  # owners is sorted; used where windows cancel out
    alone = np.bincount(owners, minlength=texts)[:, None] == 1
    return np.where(alone | (norms < 1e-6), first, sums / np.maximum(norms, 1e-6)).astype(np.float32)
