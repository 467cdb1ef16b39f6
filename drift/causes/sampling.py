"""Whether a group moved apart by more than the draw of its records explains. Pure.

Times are permuted as if all were alike; but the records of a rate that rose vary more than they did. So a group is also
compared with all others by the variance of the records themselves: its mix effect and how much further its mean went
than theirs, over the standard error of both (normal). p is Bonferroni's over the groups that were tried.
"""

import numpy as np

from drift.causes.splits import Marks, Numbers, Split


def p_values(split: Split, move: float, tried: int) -> Numbers:
    """Adjusted p per named group; of the move only the sign counts."""
    from scipy.special import ndtr

    before, after = _Stretch(split, ~split.after), _Stretch(split, split.after)
    weight = (before.n / before.records + after.n / after.records) / 2
    own = [_filled(before.mean, before.n, after.mean), _filled(after.mean, after.n, before.mean)]
    rest = [
        _filled(before.rest_mean, before.rest_n, after.rest_mean),
        _filled(after.rest_mean, after.rest_n, before.rest_mean),
    ]
    apart = weight * (1 - weight) * ((own[1] - own[0]) - (rest[1] - rest[0]))
    distance = (own[0] + own[1]) / 2 - (before.level + after.level) / 2
    mix = (after.n / after.records - before.n / before.records) * distance
    of_rate = (weight * (1 - weight)) ** 2 * (before.error + after.error)
    of_mix = distance**2 * weight * (1 - weight) * (1 / before.records + 1 / after.records)
    error = np.sqrt(of_rate + of_mix)
    statistic = np.divide((mix + apart) * np.sign(move), error, out=np.zeros_like(error), where=error > 0)
    return np.asarray(np.minimum(1.0, tried * ndtr(-statistic)))


class _Stretch:
    """One stretch of time: each named group and, beside it, all others. Some records are in it."""

    def __init__(self, split: Split, times: Marks) -> None:
        n, total, squares = (one[times].sum(axis=0) for one in (split.n, split.total, split.squares))
        self.records, self.level = n.sum(), total.sum() / n.sum()
        self.n, self.rest_n = n[:-1], n.sum() - n[:-1]
        self.mean, variance = _moments(self.n, total[:-1], squares[:-1])
        self.rest_mean, rest_variance = _moments(self.rest_n, total.sum() - total[:-1], squares.sum() - squares[:-1])
        self.error = variance / np.maximum(self.n, 1.0) + rest_variance / np.maximum(self.rest_n, 1.0)


def _moments(n: Numbers, total: Numbers, squares: Numbers) -> tuple[Numbers, Numbers]:
    mean = total / np.maximum(n, 1.0)
    return mean, np.maximum(squares - n * mean**2, 0.0) / np.maximum(n - 1, 1.0)


def _filled(mean: Numbers, n: Numbers, other: Numbers) -> Numbers:
    """A group that is not there has the mean that it has elsewhere."""
    return np.where(n > 0, mean, other)
