"""Packs token sequences into rows of a forward pass: those with a common prefix share a row, which reads it once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ragtide.evaluators.runtime.batches import Ids

LEAST_SHARED = 32  # tokens; below, what a mask of its own costs is more than they do
LONGEST_ROW = (
    2_048  # tokens; attention grows with the square, most of it between sequences that must not see each other
)


class Reading(NamedTuple):
    """Tokens for a model to read. Those from `first` (1 or more) on are scored, each given those before it."""

    owner: int
    tokens: list[int]
    first: int


class Row(NamedTuple):
    """Readings with the same `shared` first tokens: the prefix, then the rest of each, one after another."""

    shared: int
    readings: list[Reading]

    @property
    def length(self) -> int:
        """Tokens of the row."""
        return self.shared + sum(len(reading.tokens) - self.shared for reading in self.readings)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows of one forward pass (a `torch_batches.Batch`), padded on the right."""

    lines: Sequence[Row]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def tokens(self) -> int:
        """Tokens with padding."""
        return len(self.lines) * self._width

    @property
    def owners(self) -> Ids:
        """The owner of each scored token, in the order of `targets`."""
        readings = [reading for row in self.lines for reading in row.readings]
        counts = [len(reading.tokens) - reading.first for reading in readings]
        return np.repeat(np.array([reading.owner for reading in readings], np.int64), counts)

    @property
    def arrays(self) -> dict[str, Ids]:
        """`ids` [rows, longest row]; `targets`, the scored tokens, and `places`, where in `ids`, counted through all
        rows, that stands which each is scored by.

        Where readings share a row also, of each of `ids`: `positions`, its place in its reading, and `parts`, 0 for
        what all of a row's readings share, else which of them it is of, -1 for padding.
        """
        width = self._width
        shape = len(self.lines), width
        ids, positions, parts = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -1)
        places: list[Ids] = []
        targets: list[int] = []
        for line, (shared, readings) in enumerate(self.lines):
            ids[line, :shared] = readings[0].tokens[:shared]
            positions[line, :shared] = np.arange(shared)
            parts[line, :shared] = 0
            start = shared
            for part, reading in enumerate(readings, start=1):
                end = start + len(reading.tokens) - shared
                ids[line, start:end] = reading.tokens[shared:]
                positions[line, start:end] = np.arange(shared, len(reading.tokens))
                parts[line, start:end] = part
                before = np.arange(reading.first - 1, len(reading.tokens) - 1)
                places.append(line * width + np.where(before < shared, before, before - shared + start))
                targets += reading.tokens[reading.first :]
                start = end
        arrays = {"ids": ids, "places": np.concatenate(places), "targets": np.array(targets, np.int64)}
        together = any(len(row.readings) > 1 for row in self.lines)
        return {**arrays, "positions": positions, "parts": parts} if together else arrays

    @property
    def _width(self) -> int:
        return max(row.length for row in self.lines)

    def rows(self, start: int, end: int) -> "Sheet":
        """Return some of the rows."""
        return Sheet(self.lines[start:end])


def one_per_row(readings: Iterable[Reading]) -> list[Row]:
    """Put each reading into a row of its own."""
    return [Row(len(reading.tokens), [reading]) for reading in readings]


def share_prefixes(readings: Iterable[Reading]) -> list[Row]:
    """Put each reading into a row, with its neighbours in dictionary order if that saves tokens."""
    rows: list[Row] = []
    for row in one_per_row(sorted(readings, key=lambda reading: reading.tokens)):
        if not rows:
            rows.append(row)
            continue
        [reading] = row.readings
        common = _common_prefix(rows[-1].readings[-1].tokens, reading.tokens)
        if len(rows[-1].readings) > 1 and common >= 2 * rows[-1].shared:
            rows[-1:] = _split_last(rows[-1])
        rows[-1:] = _join(rows[-1], reading, common) or [rows[-1], row]
    return rows


def _split_last(row: Row) -> list[Row]:
    """Split off the last reading of a row, which shares more with the next one."""
    *others, last = row.readings
    return [*([Row(row.shared, others)] if len(others) > 1 else one_per_row(others)), *one_per_row([last])]


def _join(row: Row, reading: Reading, common: int) -> list[Row]:
    """Add the reading to the row if that saves tokens, else return []. `common` is the prefix shared with its last."""
    shared = min(row.shared, common)
    joined = Row(shared, [*row.readings, reading])
    saves_more = shared * len(row.readings) > row.shared * (len(row.readings) - 1)
    return [joined] if saves_more and shared >= LEAST_SHARED and joined.length <= LONGEST_ROW else []


def _common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix."""
    differing = (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))
