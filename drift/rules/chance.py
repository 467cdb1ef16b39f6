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

LOOKED_BACK = 20  # stretches
_MEDIAN_STEP = 0.954  # median |x - y| of two normal values of standard deviation 1
_NEGLIGIBLE = 1e-6


class Part(NamedTuple):
    """Records of a stretch, and those that are wrong."""

    records: int
    wrong: int


def may_be_chance(newest_first: Iterable[Part], limit: float, chance: float) -> bool:
    """Whether so many wrong records may come of a series of which `limit` is the true share.

    Asked of the newest stretch, of the two newest together, and so on.
    """
    if chance >= 1:
        return False
    records = wrong = 0
    for one in islice(newest_first, LOOKED_BACK):
        records, wrong = records + one.records, wrong + one.wrong
        if wrong > records * limit and chance_of(wrong, records, limit) <= chance:
            return False
    return True


def mean_may_be_chance(values: Sequence[float], line: float, chance: float) -> bool:
    """The same of means of stretches, in order of time, the last beyond the line; by how far they step from one to the
    next: at least two values.
    """
    if chance >= 1:
        return False
    sigmas = -NormalDist().inv_cdf(chance)
    error = median(abs(after - before) for before, after in pairwise(values)) / _MEDIAN_STEP
    side, off = math.copysign(1.0, values[-1] - line), 0.0
    for count, value in enumerate(reversed(values[-LOOKED_BACK:]), start=1):
        off += side * (value - line)
        if off >= sigmas * error * math.sqrt(count):
            return False
    return True


def chance_of(wrong: int, records: int, share: float) -> float:
    """P of so many or more wrong records, which are more than the share lets expect: the binomial tail, term by term.

    Terms fall from there on.
    """
    if not 0 < share < 1:
        return 0.0
    log = math.lgamma(records + 1) - math.lgamma(wrong + 1) - math.lgamma(records - wrong + 1)
    term = math.exp(log + wrong * math.log(share) + (records - wrong) * math.log1p(-share))
    found, odds = term, share / (1 - share)
    for count in range(wrong, records):
        term *= (records - count) / (count + 1) * odds
        found += term
        if term <= _NEGLIGIBLE * found:
            break
    return min(found, 1.0)
