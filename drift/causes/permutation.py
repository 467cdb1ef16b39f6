"""Whether a group moved apart from all others, or chance parts them so: a permutation of the time labels. Pure.

What is tested is not that the metric moved but that this group did not move as the others: of every time the records'
deviations are taken from the mean of all times, and from what all groups together moved by then beside their own means,
so that a move of all groups alike leaves nothing. The statistic of a group is by how much its deviations per record of
the whole changed (in its mean or in its share of the records), in the direction of the move, over its standard
deviation under permutation. p is adjusted for all groups of all dimensions that were tried by comparing with the
largest statistic of each permutation (Westfall and Young 1993): else a wide dimension would always explain something.

Neighbouring times resemble each other, so labels are permuted by blocks of a time line that is closed to a ring and
turned at random; as long as the stretch after the onset where it is short.
"""

from collections.abc import Sequence

import numpy as np

from drift.causes.splits import Marks, Numbers, Split

PERMUTATIONS = 999
_BLOCKS = 8  # at least, of a time line
_ROUNDING = 1e-12


def labels(after: Marks, seed: int, permutations: int = PERMUTATIONS) -> Numbers:
    """Permuted marks of the times after the onset, 0 or 1 [permutations, times]; as many of each as in `after`."""
    times, marked = len(after), int(after.sum())
    random = np.random.default_rng(seed)
    block = max(1, min(marked, -(-times // _BLOCKS)))
    block_of = np.arange(times) // block
    keys = random.random((permutations, block_of[-1] + 1))
    chosen = np.argsort(keys[:, block_of], axis=1, kind="stable")[:, :marked]
    turned = (chosen + random.integers(times, size=(permutations, 1))) % times
    permuted = np.zeros((permutations, times))
    np.put_along_axis(permuted, turned, 1.0, axis=1)
    return permuted


def p_values(splits: Sequence[Split], moves: Sequence[float], permuted: Numbers) -> list[Numbers]:
    """Adjusted p per named group of each split, all of one time line; of each move only the sign counts."""
    observed, largest = [], np.full(len(permuted), -np.inf)
    for split, move in zip(splits, moves, strict=True):
        by_chance = _apart(split, permuted) * np.sign(move)
        told = _apart(split, split.after[None, :].astype(float))[0] * np.sign(move)
        middle, spread = by_chance.mean(axis=0), by_chance.std(axis=0)
        known = spread > _ROUNDING * np.abs(split.total).sum() / max(split.n.sum(), 1.0)
        scale = np.where(known, spread, np.inf)
        observed.append((told - middle) / scale)
        largest = np.maximum(largest, ((by_chance - middle) / scale).max(axis=1))
    return [
        (1 + (largest[:, None] >= statistics - _ROUNDING).sum(axis=0)) / (1 + len(largest)) for statistics in observed
    ]


def _apart(split: Split, marks: Numbers) -> Numbers:
    """By how much each named group's deviations changed, per record of the whole [permutations, named groups]."""
    whole = split.n.sum(axis=1, keepdims=True)
    own = split.total.sum(axis=0) / np.maximum(split.n.sum(axis=0), 1.0)
    together = (split.total - split.n * own).sum(axis=1, keepdims=True) / np.maximum(whole, 1.0)
    level = split.total.sum() / max(split.n.sum(), 1.0)
    deviations = (split.total - split.n * (level + together))[:, :-1]
    held = np.hstack([deviations, whole])
    after = marks @ held
    before = held.sum(axis=0) - after
    apart = after[:, :-1] / np.maximum(after[:, -1:], 1.0) - before[:, :-1] / np.maximum(before[:, -1:], 1.0)
    return np.asarray(apart)
