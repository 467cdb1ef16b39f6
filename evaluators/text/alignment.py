"""Minimum edits that turn one sequence of steps into another."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Alignment(NamedTuple):
    """Indices of both sequences, ascending. Each is in a pair that matches or replaces, or deleted, or inserted."""

    pairs: list[tuple[int, int]]
    deleted: list[int]
    inserted: list[int]


def align(matches: npt.NDArray[np.bool_]) -> Alignment:
    """Align with the minimum number of edits (Levenshtein 1966) and, among those, the maximum number of matches.

    `matches` [first, second] says which pairs match. The counts are unique.
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
    """Return the minimum cost [i, j] to align the first i of one with the first j of the other."""
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
