"""Classifiers of texts and of pairs: every ask in few passes over the weights, nothing cut silently."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ragtide.evaluators.models.labels import Labels
from ragtide.evaluators.models.pieces import Pieces
from ragtide.evaluators.runtime.batches import BatchRunner, Window, in_batches
from ragtide.evaluators.spec import Ask, Vectors


class Backend(BatchRunner, Protocol):
    """What differs between the runtimes: what runs a model's batches (to logits), and the model's tokenizer."""

    pieces: Pieces


class SequenceModel:
    """A `Model` over a `Backend`.

    A text longer than the model's window is read in several, and of each label the largest probability counts. Of a
    pair the first text is read so, each time with the whole second; where the second alone fills more than three
    quarters of a window and the pair does not fit, the row is NaN.
    """

    def __init__(self, revision: str, backend: Backend, labels: Labels) -> None:
        self.revision = revision
        self._backend = backend
        self._labels = labels

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        """One row per ask, in order: float32 [len(asks), labels asked for].

        Raises `FloatingPointError` where the model gives what is no number: NaN is what cannot be read whole alone.
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
        """All windows, and the place of the ask that each is of."""
        pieces = self._backend.pieces
        texts = list(dict.fromkeys(text for ask in asks for text in ask))
        tokens = dict(zip(texts, pieces.of(texts), strict=True)) if texts else {}
        windows, owners = [], []
        for owner, ask in enumerate(asks):
            for window in pieces.windows([tokens[text] for text in ask]):
                windows.append(window)
                owners.append(owner)
        return windows, owners
