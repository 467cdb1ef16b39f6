"""Attribute the shift of a mean to the groups of a dimension. Pure.

With shares w and means m before, w' and m' after, and bars over the mean of the two, the shift is
    m' - m = sum over groups of (w'_g - w_g)(m_g bar - m bar) + w_g bar (m'_g - m_g),
the mix and the rate effect of each group (Kitagawa 1955, Das Gupta 1993). A group that appeared or vanished has only
one mean, so all of its effect is mix.

A group is a contributor only if two tests say so. The permutation test asks whether the group shifted apart from all
others: deviations of records are taken from the mean of all times and from what all groups together shifted by then.
The statistic is the change of a group's deviations per record of the whole in the direction of the shift. It is divided
by its standard deviation under permutation. p is adjusted for all groups of all dimensions by the largest statistic of
each permutation (Westfall and Young 1993). Neighbouring times resemble each other, so labels are permuted by blocks of
a time line that is closed to a ring and turned at random.

The sampling test compares a group with all others by the variance of the records themselves: those of a rate that rose
vary more than they did. The statistic is the group's mix effect and how much further its mean went than theirs, over
the standard error of both (normal). p is Bonferroni's over the groups that were tested."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ragtide.drift.rootcause.slices import Flags, Numbers, Split, Sums, with_traffic


class Effects(NamedTuple):
    """Arrays [..., groups], in the unit of the mean; summed over groups and effects they are the shift."""

    mix: Numbers
    rate: Numbers


class Shift(NamedTuple):
    """The mean of all records before and after, and how many there were; some of both."""

    before: float
    after: float
    n_before: float
    n_after: float

    @property
    def size(self) -> float:
        """In the unit of the mean; negative if it fell."""
        return self.after - self.before


class Contribution(NamedTuple):
    """One group's part in a shift: `share` of the whole shift; `p` is adjusted for all groups that were tested.

    Traffic is the group's share of the records; a mean is None if the group has none.
    """

    dimension: str
    value: str
    mix: float
    rate: float
    share: float
    traffic_before: float
    traffic_after: float
    mean_before: float | None
    mean_after: float | None
    p: float = 1.0

    @property
    def traffic(self) -> float:
        """Before and after averaged: what a group explains that moved as all others did."""
        return (self.traffic_before + self.traffic_after) / 2

    @property
    def is_rate_effect(self) -> bool:
        """Whether the group itself changed, rather than its share of the traffic."""
        return abs(self.rate) >= abs(self.mix)


def effects(n: Numbers, total: Numbers, n_after: Numbers, total_after: Numbers) -> Effects:
    """Mix and rate effects of counts and totals [..., groups]; a side without records has the means of the other."""
    all_before, all_after = (np.maximum(one.sum(axis=-1, keepdims=True), 1.0) for one in (n, n_after))
    level = (total.sum(axis=-1, keepdims=True) / all_before + total_after.sum(axis=-1, keepdims=True) / all_after) / 2
    before, after = _means(n, total), _means(n_after, total_after)
    before, after = np.where(n > 0, before, after), np.where(n_after > 0, after, before)
    weight, weight_after = n / all_before, n_after / all_after
    mix = (weight_after - weight) * ((before + after) / 2 - level)
    return Effects(mix, (weight + weight_after) / 2 * (after - before))


def shift_of(split: Split) -> Shift | None:
    """Return the shift of all groups together; None if there are no records before or after."""
    (n, total, _), (n_after, total_after, _) = (tuple(float(one.sum()) for one in side) for side in split.sides)
    return Shift(total / n, total_after / n_after, n, n_after) if n and n_after else None


def contributions(split: Split, shift: Shift) -> list[Contribution]:
    """Return the contribution of each named group to a shift that is not 0."""
    (n, total, _), (n_after, total_after, _) = split.sides
    mix, rate = effects(n, total, n_after, total_after)
    return [
        Contribution(
            dimension=split.dimension,
            value=value,
            mix=float(mix[at]),
            rate=float(rate[at]),
            share=float(mix[at] + rate[at]) / shift.size,
            traffic_before=float(n[at]) / shift.n_before,
            traffic_after=float(n_after[at]) / shift.n_after,
            mean_before=float(total[at] / n[at]) if n[at] else None,
            mean_after=float(total_after[at] / n_after[at]) if n_after[at] else None,
        )
        for at, value in enumerate(split.values)
    ]


def _means(n: Numbers, total: Numbers) -> Numbers:
    return np.divide(total, n, out=np.zeros_like(total), where=n > 0)


PERMUTATIONS = 999
_BLOCKS = 8  # at least, of a time line
_ROUNDING = 1e-12


def permuted_labels(after: Flags, seed: int, permutations: int = PERMUTATIONS) -> Numbers:
    """Permute the marks of the times since the onset: 0 or 1 [permutations, times], as many of each as in `after`."""
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


def permutation_p_values(splits: Sequence[Split], shifts: Sequence[float], permuted: Numbers) -> list[Numbers]:
    """Adjusted p per named group of each split, all of the same times; of each shift only the sign counts."""
    observed, largest = [], np.full(len(permuted), -np.inf)
    for split, shift in zip(splits, shifts, strict=True):
        by_chance = _deviation_change(split, permuted) * np.sign(shift)
        actual = _deviation_change(split, split.after[None, :].astype(float))[0] * np.sign(shift)
        middle, spread = by_chance.mean(axis=0), by_chance.std(axis=0)
        known = spread > _ROUNDING * np.abs(split.total).sum() / max(split.n.sum(), 1.0)
        scale = np.where(known, spread, np.inf)
        observed.append((actual - middle) / scale)
        largest = np.maximum(largest, ((by_chance - middle) / scale).max(axis=1))
    return [
        (1 + (largest[:, None] >= statistics - _ROUNDING).sum(axis=0)) / (1 + len(largest)) for statistics in observed
    ]


def _deviation_change(split: Split, marks: Numbers) -> Numbers:
    """Return the change of each named group's deviations, per record of the whole [permutations, named groups]."""
    whole = split.n.sum(axis=1, keepdims=True)
    own = split.total.sum(axis=0) / np.maximum(split.n.sum(axis=0), 1.0)
    together = (split.total - split.n * own).sum(axis=1, keepdims=True) / np.maximum(whole, 1.0)
    level = split.total.sum() / max(split.n.sum(), 1.0)
    deviations = (split.total - split.n * (level + together))[:, :-1]
    columns = np.hstack([deviations, whole])
    after = marks @ columns
    before = columns.sum(axis=0) - after
    change = after[:, :-1] / np.maximum(after[:, -1:], 1.0) - before[:, :-1] / np.maximum(before[:, -1:], 1.0)
    return np.asarray(change)


def sampling_p_values(split: Split, shift: float, tested: int) -> Numbers:
    """Adjusted p per named group; of the shift only the sign counts."""
    from scipy.special import ndtr

    before, after = (_Side(sums) for sums in split.sides)
    weight = (before.n / before.records + after.n / after.records) / 2
    own, own_after = _filled(before.mean, before.n, after.mean), _filled(after.mean, after.n, before.mean)
    rest = _filled(before.rest_mean, before.rest_n, after.rest_mean)
    rest_after = _filled(after.rest_mean, after.rest_n, before.rest_mean)
    divergence = weight * (1 - weight) * ((own_after - own) - (rest_after - rest))
    distance = (own + own_after) / 2 - (before.level + after.level) / 2
    mix = (after.n / after.records - before.n / before.records) * distance
    of_rate = (weight * (1 - weight)) ** 2 * (before.error + after.error)
    of_mix = distance**2 * weight * (1 - weight) * (1 / before.records + 1 / after.records)
    error = np.sqrt(of_rate + of_mix)
    statistic = np.divide((mix + divergence) * np.sign(shift), error, out=np.zeros_like(error), where=error > 0)
    return np.asarray(np.minimum(1.0, tested * ndtr(-statistic)))


class _Side:
    """Before or after, with some records: each named group and, beside it, all others."""

    def __init__(self, sums: Sums) -> None:
        n, total, squares = sums
        self.records, self.level = n.sum(), total.sum() / n.sum()
        self.n, self.rest_n = n[:-1], n.sum() - n[:-1]
        self.mean, variance = _moments(self.n, total[:-1], squares[:-1])
        self.rest_mean, rest_variance = _moments(self.rest_n, total.sum() - total[:-1], squares.sum() - squares[:-1])
        self.error = variance / np.maximum(self.n, 1.0) + rest_variance / np.maximum(self.rest_n, 1.0)


def _moments(n: Numbers, total: Numbers, squares: Numbers) -> tuple[Numbers, Numbers]:
    mean = total / np.maximum(n, 1.0)
    return mean, np.maximum(squares - n * mean**2, 0.0) / np.maximum(n - 1, 1.0)


def _filled(mean: Numbers, n: Numbers, other: Numbers) -> Numbers:
    """Fill the mean of a group without records on one side with that of the other side."""
    return np.where(n > 0, mean, other)


ALPHA = 0.02
MIN_SHARE = 0.2  # of the shift: a group that explains less is no answer
MIN_TRAFFIC = 0.01  # of the records, before or after
MIN_RECORDS = 20
MIN_TIMES = 50  # a short interval has as many places as there are times: with fewer none can be surprising
_INTENSITY = 1.5  # a record of the group adds so many times as much to the shift as one of the rest


def main_contributor(splits: Sequence[Split], seed: int) -> Contribution | None:
    """Return the group that explains most beyond its share of the traffic; None if none is significant.

    The splits are of the same records and times.
    """
    shifts = [
        (split, shift) for split in with_traffic(splits) if split.values and (shift := shift_of(split)) and shift.size
    ]
    if not shifts or len(shifts[0][0].after) < MIN_TIMES:
        return None
    permuted = permuted_labels(shifts[0][0].after, seed)
    by_times = permutation_p_values([split for split, _ in shifts], [shift.size for _, shift in shifts], permuted)
    tested = sum(len(split.values) for split, _ in shifts)
    found = []
    for (split, shift), p_by_times in zip(shifts, by_times, strict=True):
        p = np.maximum(p_by_times, sampling_p_values(split, shift.size, tested))
        enough = split.n[:, :-1].sum(axis=0) >= MIN_RECORDS
        groups = zip(contributions(split, shift), p, enough, strict=True)
        found += [one._replace(p=float(own)) for one, own, is_enough in groups if is_enough]
    return max(filter(_is_significant, found), key=lambda one: one.share - one.traffic, default=None)


def _is_significant(one: Contribution) -> bool:
    return (
        one.p <= ALPHA
        and one.share >= MIN_SHARE
        and max(one.traffic_before, one.traffic_after) >= MIN_TRAFFIC
        and one.share * (1 - one.traffic) >= _INTENSITY * (1 - one.share) * one.traffic
    )
