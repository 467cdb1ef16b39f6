"""The least edits that turn one sequence of steps into another."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Alignment(NamedTuple):
    """Every place of both sequences once, ascending: in a pair of which the partners match or one replaces the other,
    or alone, to be deleted from the first or inserted into it from the second.
    """

    pairs: list[tuple[int, int]]
    deleted: list[int]
    inserted: list[int]


def align(matches: npt.NDArray[np.bool_]) -> Alignment:
    """The one in which pairs that do not match and places alone are as few as can be (Levenshtein 1966), and of several
    such one with the most matching pairs, which fixes its counts. `matches` [first, second] tells which pairs match.
    """
    worse = sum(matches.shape) + 1  # an edit costs so much, more than all matches earn
    steps = np.where(matches, -1, worse).astype(np.int32)
    costs = _costs(steps, worse)
    i, j = matches.shape
    pairs: list[tuple[int, int]] = []
    deleted: list[int] = []
    inserted: list[int] = []
    while i or j:
        if i and j and costs[i, j] == costs[i - 1, j - 1] + steps[i - 1, j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif i and costs[i, j] == costs[i - 1, j] + worse:
            i -= 1
            deleted.append(i)
        else:
            j -= 1
            inserted.append(j)
    return Alignment(pairs[::-1], deleted[::-1], inserted[::-1])


def _costs(steps: npt.NDArray[np.int32], alone: int) -> npt.NDArray[np.int32]:
    """Least cost of aligning the first i places of one with the first j of the other, [i, j]: that of each pair and of
    each place alone.
    """
    rows, columns = steps.shape
    left = np.arange(columns + 1, dtype=np.int32) * alone
    costs = np.empty((rows + 1, columns + 1), np.int32)
    costs[0] = left
    for i in range(rows):
        row = costs[i] + alone
        np.minimum(row[1:], costs[i, :-1] + steps[i], out=row[1:])
        # Insertions: the least, over all columns before, of what it costs up to there and the places from there on.
        costs[i + 1] = np.minimum.accumulate(row - left) + left
    return costs
