"""Classifiers of texts and pairs, with few forward passes and without cutting texts silently."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ragtide.evaluators.models.labels import Labels
from ragtide.evaluators.models.pieces import Pieces
from ragtide.evaluators.runtime.batches import BatchRunner, Window, in_batches
from ragtide.evaluators.spec import Ask, Vectors


class Backend(BatchRunner, Protocol):
    """The part of a classifier that depends on the runtime: it runs batches (to logits) and tokenises."""

    pieces: Pieces


class SequenceModel:
    """A `Model` over a `Backend`.

    A text longer than the model's window is read in several windows, and the highest probability of each label counts.
    Of a pair the first text is read so, each time with the whole second. If the pair does not fit and the second fills
    more than three quarters of a window, the row is NaN.
    """

    def __init__(self, revision: str, backend: Backend, labels: Labels) -> None:
        self.revision = revision
        self._backend = backend
        self._labels = labels

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        """Return one row per ask, in order: float32 [len(asks), selected labels].

        Raises `FloatingPointError` if the model gives numbers that are not finite: NaN is only for asks that cannot be
        read whole.
        """
        rows = np.full((len(asks), len(self._labels.places)), np.nan, np.float32)
        windows, owners = self._windows(asks)
        if windows:
            logits = in_batches(self._backend, windows, self._backend.pieces.pad)
            if not np.isfinite(logits).all():
                raise FloatingPointError(f"{self.revision} gives scores that are not finite")
            np.fmax.at(rows, owners, self._labels.probabilities(logits))
        return rows

    def _windows(self, asks: Sequence[Ask]) -> tuple[list[Window], list[int]]:
        """Return all windows, and the index of the ask of each."""
        pieces = self._backend.pieces
        texts = list(dict.fromkeys(text for ask in asks for text in ask))
        tokens = dict(zip(texts, pieces.of(texts), strict=True)) if texts else {}
        windows, owners = [], []
        for owner, ask in enumerate(asks):
            for window in pieces.windows([tokens[text] for text in ask]):
                windows.append(window)
                owners.append(owner)
        return windows, owners
