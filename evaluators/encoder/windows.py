"""Texts of any length to unit vectors: windows of word pieces, packed by length so that little is padded."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from evaluators.spec import Vectors
from evaluators.surrogates import replaced

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the word pieces of one window ([CLS] and [SEP] for BERT), and how long it may be in all."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    max_tokens: int

    @property
    def room(self) -> int:
        """Word pieces that fit between."""
        return self.max_tokens - len(self.before) - len(self.after)


class Backend(Protocol):
    """What differs between the runtimes."""

    dimension: int
    frame: Frame
    batch_tokens: int

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Word pieces of each of one text or more, whole and without special tokens. Safe in several threads."""
        ...

    def forward(self, ids: Ids, mask: Ids) -> Vectors:
        """Unit vectors [batch, dimension] of padded windows [batch, length]. Safe to call from several threads."""
        ...


class WindowedEncoder:
    """An `Encoder` over a `Backend`. A text longer than the model's window is never cut.

    Its word pieces are shared evenly among as few windows as hold them, and its vector is the mean of theirs, made a
    unit vector again: every part of the text counts alike. A text that fits has the model's own vector.
    """

    def __init__(self, revision: str, backend: Backend) -> None:
        self.revision = revision
        self.dimension = backend.dimension
        self._backend = backend

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, one row per text, in order."""
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        windows, owners = [], []
        for owner, pieces in enumerate(self._backend.tokenize([replaced(text) for text in texts])):
            for window in shared_evenly(pieces, self._backend.frame.room):
                windows.append(window)
                owners.append(owner)
        vectors = np.empty((len(windows), self.dimension), np.float32)
        for batch in packed([len(window) for window in windows], self._backend):
            vectors[batch] = self._forward([windows[i] for i in batch])
        return vectors if len(windows) == len(texts) else _means(vectors, np.array(owners), len(texts))

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Word pieces of all texts together, without special tokens."""
        return sum(map(len, self._backend.tokenize([replaced(text) for text in texts]))) if texts else 0

    def _forward(self, windows: list[list[int]]) -> Vectors:
        frame = self._backend.frame
        framed = [[*frame.before, *window, *frame.after] for window in windows]
        ids = np.zeros((len(framed), max(map(len, framed))), np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(framed):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        return self._backend.forward(ids, mask)


def shared_evenly(pieces: list[int], room: int) -> list[list[int]]:
    """As few windows of at most `room` as hold all pieces, their lengths at most one apart; one, if empty, at least."""
    count = max(1, -(-len(pieces) // room))
    edges = [len(pieces) * i // count for i in range(count + 1)]
    return [pieces[start:end] for start, end in pairwise(edges)]


def packed(lengths: Sequence[int], backend: Backend) -> list[list[int]]:
    """Every index once, longest first, in batches that hold at most `batch_tokens` once padded (or one window)."""
    frame = backend.frame
    batches: list[list[int]] = []
    capacity = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if not batches or len(batches[-1]) >= capacity:
            batches.append([])
            padded = lengths[i] + frame.max_tokens - frame.room  # the first is the longest of its batch
            capacity = max(1, backend.batch_tokens // max(1, padded))
        batches[-1].append(i)
    return batches


def _means(vectors: Vectors, owners: npt.NDArray[np.int64], texts: int) -> Vectors:
    sums = np.zeros((texts, vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    first = vectors[np.searchsorted(owners, np.arange(texts))]  # owners is sorted; used where windows cancel out
    alone = np.bincount(owners, minlength=texts)[:, None] == 1
    return np.where(alone | (norms < 1e-6), first, sums / np.maximum(norms, 1e-6)).astype(np.float32)
