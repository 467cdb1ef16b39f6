"""Whether chance alone may put a few stretches of a series that is well on the wrong side of its line. Pure.

A service of which 2 of 100 requests fail has a stretch of thirty with two failures, above 5 %, every few hours, and
three in five of them once a day. So k of m stretches are a problem once their records, or those of a longer time up to
now, show that the line is crossed: a series that is exactly on it has so many less often than `rules.chance`.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from statistics import NormalDist, median
from typing import NamedTuple

MAX_INTERVALS = 20  # stretches
_MEDIAN_STEP = 0.954  # median |x - y| of two normal values of standard deviation 1
_NEGLIGIBLE = 1e-6


class Sample(NamedTuple):
    """Records of a stretch, and those that are wrong."""

    records: int
    bad: int


def within_binomial_noise(newest_first: Iterable[Sample], limit: float, chance: float) -> bool:
    """Whether so many wrong records may come of a series of which `limit` is the true share.

    Asked of the newest stretch, of the two newest together, and so on.
    """
    if chance >= 1:
        return False
    records = bad = 0
    for one in islice(newest_first, MAX_INTERVALS):
        records, bad = records + one.records, bad + one.bad
        if bad > records * limit and binomial_tail(bad, records, limit) <= chance:
            return False
    return True


def within_mean_noise(values: Sequence[float], bound: float, chance: float) -> bool:
    """The same of means of stretches, in order of time, the last beyond the line; by how far they step from one to the
    next: at least two values.
    """
    if chance >= 1:
        return False
    sigmas = -NormalDist().inv_cdf(chance)
    error = median(abs(after - before) for before, after in pairwise(values)) / _MEDIAN_STEP
    side, off = math.copysign(1.0, values[-1] - bound), 0.0
    for count, value in enumerate(reversed(values[-MAX_INTERVALS:]), start=1):
        off += side * (value - bound)
        if off >= sigmas * error * math.sqrt(count):
            return False
    return True


def binomial_tail(bad: int, records: int, share: float) -> float:
    """P of so many or more wrong records, which are more than the share lets expect: the binomial tail, term by term.

    Terms fall from there on. More wrong records than records have no chance: 0.
    """
    if not 0 < share < 1 or bad > records:
        return 0.0
    log = math.lgamma(records + 1) - math.lgamma(bad + 1) - math.lgamma(records - bad + 1)
    term = math.exp(log + bad * math.log(share) + (records - bad) * math.log1p(-share))
    found, odds = term, share / (1 - share)
    for count in range(bad, records):
        term *= (records - count) / (count + 1) * odds
        found += term
        if term <= _NEGLIGIBLE * found:
            break
    return min(found, 1.0)
