"""A metric through time, split by one dimension: what decomposition and its test work on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Sums(NamedTuple):
    """Of one group at each time: how many records, what they add up to, and what their squares do."""

    n: Numbers
    total: Numbers
    squares: Numbers


@dataclass(frozen=True, slots=True)
class Split:
    """Per time and group the `Sums` of the records; arrays are [times, groups].

    `values` name the groups; the last column is all other records together, and has no name. `after` marks the times
    since the onset. `sample_share` is the share of the records that was read.
    """

    dimension: str
    values: tuple[str, ...]
    n: Numbers
    total: Numbers
    squares: Numbers
    after: Flags
    sample_share: float = 1.0

    @property
    def has_groups(self) -> bool:
        """Whether the records are in more than one group."""
        return int((self.n.sum(axis=0) > 0).sum()) > 1


def split_of(dimension: str, groups: Mapping[str, Sums], whole: Sums, after: Flags, sample_share: float = 1.0) -> Split:
    """Made of each named group's sums [times]; what the whole has beyond them is the last column."""
    n, total, squares = (
        np.column_stack([*(one[i] for one in groups.values()), whole[i] - sum(one[i] for one in groups.values())])
        for i in range(3)
    )
    n[:, -1] = np.maximum(n[:, -1], 0.0)
    total[n[:, -1] == 0, -1] = squares[n[:, -1] == 0, -1] = 0.0  # else what rounding left
    return Split(dimension, tuple(groups), n, total, squares, after, sample_share)


def with_traffic(splits: Sequence[Split]) -> list[Split]:
    """Of one time line, without the times at which the first has no records: they are no sample of anything."""
    if not splits:
        return []
    busy = splits[0].n.sum(axis=1) > 0
    return [
        replace(one, n=one.n[busy], total=one.total[busy], squares=one.squares[busy], after=one.after[busy])
        for one in splits
    ]
