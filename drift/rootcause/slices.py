"""A metric through time, split by one dimension: what attribution and its tests work on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Sums(NamedTuple):
    """The number of records, their sum and the sum of their squares: of one group by time, or by group."""

    n: Numbers
    total: Numbers
    squares: Numbers


@dataclass(frozen=True, slots=True)
class Split:
    """The `Sums` of the records by time and group; arrays are [times, groups].

    `values` name the groups; the last column is all other records and has no name. `after` marks the times since the
    onset. `sample_share` is the share of the records that was read.
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

    @property
    def sides(self) -> tuple[Sums, Sums]:
        """By group, before the onset and since."""
        before, after = (
            Sums(*(one[times].sum(axis=0) for one in (self.n, self.total, self.squares)))
            for times in (~self.after, self.after)
        )
        return before, after


def split_of(dimension: str, groups: Mapping[str, Sums], whole: Sums, after: Flags, sample_share: float = 1.0) -> Split:
    """Make a split of each named group's sums by time; what the whole has beyond them is the last column."""
    n, total, squares = (
        np.column_stack([*(one[i] for one in groups.values()), whole[i] - sum(one[i] for one in groups.values())])
        for i in range(3)
    )
    n[:, -1] = np.maximum(n[:, -1], 0.0)
    total[n[:, -1] == 0, -1] = squares[n[:, -1] == 0, -1] = 0.0  # else what rounding left
    return Split(dimension, tuple(groups), n, total, squares, after, sample_share)


def with_traffic(splits: Sequence[Split]) -> list[Split]:
    """Splits of the same records, without the times at which there are none: these are no sample of anything."""
    if not splits:
        return []
    busy = splits[0].n.sum(axis=1) > 0
    return [
        replace(one, n=one.n[busy], total=one.total[busy], squares=one.squares[busy], after=one.after[busy])
        for one in splits
    ]
