"""Windows of tokens to padded batches: by length, so that little is padded, and no more tokens at once than suits."""

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
    """Tokens that a model reads at once, special ones with them, and which of the texts each belongs to."""

    ids: Sequence[int] | Ids
    kinds: Sequence[int] | Ids = ()  # 0 or 1 each, where the model tells two texts apart so; else empty


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Windows as a model takes them, [batch, length] each."""

    ids: Ids
    mask: Ids
    kinds: Ids | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tokens(self) -> int:
        """Of all windows, padding included."""
        return self.ids.size

    @property
    def arrays(self) -> dict[str, Ids]:
        """As transformers name them."""
        named = {"input_ids": self.ids, "attention_mask": self.mask}
        return named if self.kinds is None else {**named, "token_type_ids": self.kinds}

    def rows(self, start: int, end: int) -> "PaddedBatch":
        """Some of the windows, without the padding that the others needed."""
        most = int(self.mask[start:end].sum(axis=1).max())
        kinds = None if self.kinds is None else self.kinds[start:end, :most]
        return PaddedBatch(self.ids[start:end, :most], self.mask[start:end, :most], kinds)


class TokenLimit(Protocol):
    """What has a limit on one forward pass; it may change from one to the next."""

    @property
    def batch_tokens(self) -> int:
        """Padded tokens of one forward pass."""
        ...


def pack(lengths: Sequence[int], limited: TokenLimit) -> Iterator[list[int]]:
    """Every index once, longest first, in batches that hold at most `batch_tokens` once padded (or one window), and no
    more padding than a quarter of that.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    held = np.array([lengths[i] for i in order], np.int64)
    start = 0
    while start < len(order):
        most = limited.batch_tokens
        longest = max(1, held[start])  # the first is the longest of its batch
        some = held[start : start + max(1, most // longest)]
        padding = (longest - some).cumsum()
        size = max(1, int(padding.searchsorted(most // _PADDING, side="right")))
        yield order[start : start + size]
        start += size


def pad_windows(windows: Sequence[Window], pad: int = 0) -> PaddedBatch:
    """The windows side by side, padded on the right with the token `pad`."""
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
    """As few windows of at most `room` as hold all pieces, their lengths at most one apart; one, if empty, at least."""
    if len(pieces) <= room:
        return [pieces]
    count = -(-len(pieces) // room)
    edges = [len(pieces) * i // count for i in range(count + 1)]
    return [pieces[start:end] for start, end in pairwise(edges)]


class BatchRunner(TokenLimit, Protocol):
    """What runs padded batches: one model on one device."""

    def run(self, batches: Iterator[PaddedBatch]) -> Vectors:
        """The rows of all batches, in order: float32 [windows, outputs]. Safe to call from several threads."""
        ...


def in_batches(model: BatchRunner, windows: Sequence[Window], pad: int = 0) -> Vectors:
    """The model's row of each window (one or more), in order, whatever order it read them in."""
    order: list[int] = []

    def batches() -> Iterator[PaddedBatch]:
        for batch in pack([len(window.ids) for window in windows], model):
            order.extend(batch)
            yield pad_windows([windows[i] for i in batch], pad)

    given = model.run(batches())
    rows = np.empty_like(given)
    rows[order] = given
    return rows
