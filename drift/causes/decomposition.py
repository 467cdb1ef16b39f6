"""Which groups a move of a mean comes from, exactly: their shares of the traffic changed (mix), or they did (rate).

Of shares w and means m before, w' and m' after, and bars over the mean of the two, the move is
    m' - m = sum over groups of (w'_g - w_g)(m_g bar - m bar) + w_g bar (m'_g - m_g),
the mix and the rate effect of each group (Kitagawa 1955, Das Gupta 1993). A group that appeared or vanished has only
one mean, so that all of its effect is mix. Pure.
"""

from typing import NamedTuple

import numpy as np

from drift.causes.splits import Numbers, Split


class Effects(NamedTuple):
    """Arrays [..., groups], in the unit of the mean; summed over the groups and both of them they are the move."""

    mix: Numbers
    rate: Numbers


class Move(NamedTuple):
    """The mean of all records before and after, and how many there were; some of both."""

    before: float
    after: float
    n_before: float
    n_after: float

    @property
    def size(self) -> float:
        """In the unit of the mean; negative where it fell."""
        return self.after - self.before


class Contribution(NamedTuple):
    """One group's part in a move. `share` is of the whole move; `p` is adjusted for all groups that were tried.

    Traffic is the group's share of the records; a mean is None where the group has none.
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
    def by_rate(self) -> bool:
        """Whether the group itself changed, rather than its share of the traffic."""
        return abs(self.rate) >= abs(self.mix)


def effects(n: Numbers, total: Numbers, n_after: Numbers, total_after: Numbers) -> Effects:
    """Of counts and totals [..., groups]; a stretch without records has the means of the other."""
    all_before, all_after = (np.maximum(one.sum(axis=-1, keepdims=True), 1.0) for one in (n, n_after))
    level = (total.sum(axis=-1, keepdims=True) / all_before + total_after.sum(axis=-1, keepdims=True) / all_after) / 2
    before, after = _means(n, total), _means(n_after, total_after)
    before, after = np.where(n > 0, before, after), np.where(n_after > 0, after, before)
    weight, weight_after = n / all_before, n_after / all_after
    mix = (weight_after - weight) * ((before + after) / 2 - level)
    return Effects(mix, (weight + weight_after) / 2 * (after - before))


def move_of(split: Split) -> Move | None:
    """The move of all groups together; None where there are no records before or after."""
    n, n_after = split.n[~split.after].sum(), split.n[split.after].sum()
    if not n or not n_after:
        return None
    total, total_after = split.total[~split.after].sum(), split.total[split.after].sum()
    return Move(float(total / n), float(total_after / n_after), float(n), float(n_after))


def contributions(split: Split, move: Move) -> list[Contribution]:
    """Of each named group to a move that is not 0."""
    n, n_after = split.n[~split.after].sum(axis=0), split.n[split.after].sum(axis=0)
    total, total_after = split.total[~split.after].sum(axis=0), split.total[split.after].sum(axis=0)
    mix, rate = effects(n, total, n_after, total_after)
    return [
        Contribution(
            dimension=split.dimension,
            value=value,
            mix=float(mix[at]),
            rate=float(rate[at]),
            share=float(mix[at] + rate[at]) / move.size,
            traffic_before=float(n[at]) / move.n_before,
            traffic_after=float(n_after[at]) / move.n_after,
            mean_before=float(total[at] / n[at]) if n[at] else None,
            mean_after=float(total_after[at] / n_after[at]) if n_after[at] else None,
        )
        for at, value in enumerate(split.values)
    ]


def _means(n: Numbers, total: Numbers) -> Numbers:
    return np.divide(total, n, out=np.zeros_like(total), where=n > 0)
