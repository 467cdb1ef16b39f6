"""Batches windows of tokens by length, with little padding and a token limit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.spec import Vectors

Ids = npt.NDArray[np.int64]
Tokens = TypeVar("Tokens", Sequence[int], Ids)
_PADDING = 4  # of `batch_tokens` at most one in so many is padding: a pass of its own costs less than to read more


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens that a model reads at once, with special tokens, and the text of each."""

    ids: Sequence[int] | Ids
    kinds: Sequence[int] | Ids = ()  # 0 or 1 each, where the model tells two texts apart so; else empty


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Windows as model input, [batch, length] each."""

    ids: Ids
    mask: Ids
    kinds: Ids | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tokens(self) -> int:
        """Tokens of all windows, with padding."""
        return self.ids.size

    @property
    def arrays(self) -> dict[str, Ids]:
        """The arrays, with the names of transformers."""
        named = {"input_ids": self.ids, "attention_mask": self.mask}
        return named if self.kinds is None else {**named, "token_type_ids": self.kinds}

    def rows(self, start: int, end: int) -> "PaddedBatch":
        """Return some of the windows, without padding that only the others needed."""
        most = int(self.mask[start:end].sum(axis=1).max())
        kinds = None if self.kinds is None else self.kinds[start:end, :most]
        return PaddedBatch(self.ids[start:end, :most], self.mask[start:end, :most], kinds)


class TokenLimit(Protocol):
    """Has a token limit per forward pass, which may change between passes."""

    @property
    def batch_tokens(self) -> int:
        """Padded tokens of one forward pass."""
        ...


def pack(lengths: Sequence[int], limited: TokenLimit) -> Iterator[list[int]]:
    """Yield batches of indices, longest first, each index once.

    A batch has at most `batch_tokens` padded tokens (or one window), and at most a quarter of that is padding.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    sizes = np.array([lengths[i] for i in order], np.int64)
    start = 0
    while start < len(order):
        most = limited.batch_tokens
        longest = max(1, sizes[start])  # the first is the longest of its batch
        some = sizes[start : start + max(1, most // longest)]
        padding = (longest - some).cumsum()
        size = max(1, int(padding.searchsorted(most // _PADDING, side="right")))
        yield order[start : start + size]
        start += size


def pad_windows(windows: Sequence[Window], pad: int = 0) -> PaddedBatch:
    """Stack the windows, padded on the right with the token `pad`."""
    lengths = np.array([len(window.ids) for window in windows])
    inside = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(inside.shape, pad, np.int64)
    ids[inside] = np.concatenate([window.ids for window in windows])
    kinds = None
    if len(windows[0].kinds):
        kinds = np.zeros(inside.shape, np.int64)
        kinds[inside] = np.concatenate([window.kinds for window in windows])
    return PaddedBatch(ids, inside.astype(np.int64), kinds)


def split_evenly(pieces: Tokens, room: int) -> list[Tokens]:
    """Split into as few windows of at most `room` as possible, of nearly equal length. At least one, even if empty."""
    if len(pieces) <= room:
        return [pieces]
    count = -(-len(pieces) // room)
    edges = [len(pieces) * i // count for i in range(count + 1)]
    return [pieces[start:end] for start, end in pairwise(edges)]


class BatchRunner(TokenLimit, Protocol):
    """Runs padded batches of one model on one device."""

    def run(self, batches: Iterator[PaddedBatch]) -> Vectors:
        """Return the rows of all batches, in order: float32 [windows, outputs]. Thread-safe."""
        ...


def in_batches(model: BatchRunner, windows: Sequence[Window], pad: int = 0) -> Vectors:
    """Return the model's row of each window, in order. There is at least one window."""
    order: list[int] = []

    def batches() -> Iterator[PaddedBatch]:
        for batch in pack([len(window.ids) for window in windows], model):
            order.extend(batch)
            yield pad_windows([windows[i] for i in batch], pad)

    given = model.run(batches())
    rows = np.empty_like(given)
    rows[order] = given
    return rows
