"""Significance of breaches: can chance alone explain that a healthy series crosses its limit? Pure.

A service that fails 2 of 100 requests has intervals of 30 requests with two failures, above 5 %, every few hours.
Three of five consecutive intervals do so once a day. So a k-of-m breach opens a problem only if it is significant:
a series exactly at its limit shows it with probability below `rules.chance`.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from statistics import NormalDist, median
from typing import NamedTuple

from ragtide.drift.stats.proportions import student_quantile

MAX_INTERVALS = 20
_MEDIAN_STEP = 0.954  # median |x - y| of two normal values of standard deviation 1
_NEGLIGIBLE = 1e-6
FEWEST_FREEDOM = 5  # from which an error counts as known: below, one heavy record decides


class EstimatedValue(NamedTuple):
    """A value estimated from so many records, with its standard error and the degrees of freedom of that.

    An error of 0 is exact: the records are all alike.
    """

    value: float
    error: float
    records: int
    freedom: float


class BadCount(NamedTuple):
    """Records of an interval, and how many are bad; of weighted records no whole numbers."""

    records: float
    bad: float


def within_binomial_noise(newest_first: Iterable[BadCount], limit: float, chance: float) -> bool:
    """Tell whether a series with true share `limit` may show so many bad records: the binomial test.

    Tested on the newest interval, on the two newest together, and so on.
    """
    if chance >= 1:
        return False
    records = bad = 0.0
    for one in islice(newest_first, MAX_INTERVALS):
        records, bad = records + one.records, bad + one.bad
        if bad > records * limit and binomial_tail(round(bad), round(records), limit) <= chance:
            return False
    return True


def within_mean_noise(values: Sequence[float], bound: float, chance: float) -> bool:
    """Tell the same of means of intervals, in order of time, the last beyond the bound.

    Their noise is estimated from the steps between consecutive means; needs at least two.
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


def within_sampling_noise(newest_first: Iterable[EstimatedValue], bound: float, chance: float) -> bool:
    """Tell the same of values that were estimated from samples, the newest beyond the bound.

    Tested on the newest value, on the two newest together, and so on, each by its records, with Student's quantile for
    their degrees of freedom together (Satterthwaite 1946). A value with fewer than `FEWEST_FREEDOM` is no evidence, and
    left out.
    """
    if chance >= 1:
        return False
    newest = list(islice(newest_first, MAX_INTERVALS))
    side = math.copysign(1.0, newest[0].value - bound)
    off, variance, uncertainty = 0.0, 0.0, 0.0
    for one in newest:
        if one.freedom < FEWEST_FREEDOM:
            continue
        own = (one.records * one.error) ** 2
        off, variance = off + one.records * side * (one.value - bound), variance + own
        uncertainty += own**2 / one.freedom
        reach = 0.0
        if variance > 0:
            reach = student_quantile(1 - chance, variance**2 / uncertainty) * math.sqrt(variance)
        if off > 0 and off >= reach:
            return False
    return True


def binomial_tail(bad: int, records: int, share: float) -> float:
    """Return P(X >= bad) for X ~ Binomial(records, share), where `bad` exceeds the expectation; 0 if bad > records.

    Summed term by term: terms decrease beyond the expectation.
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
