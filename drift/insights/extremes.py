"""The least and the greatest of several estimates, where they lie apart for sure. Pure.

Each interval holds with all the others at 95 % together (`confidence_of_each`), so that whichever two turn out to be
the extremes, the ratio of their ends is an interval of their ratio.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from drift.insights.shares import CONFIDENCE, Interval, reach_of
from drift.windows.bins import LOG_ORIGIN, LOG_STEP

MARGIN = 1.1  # times as great: what is nobody's business


class Estimate(NamedTuple):
    """A positive number of `n` records, and its interval."""

    name: str
    n: int
    value: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class Apart:
    """`ratio` is the greatest over the least."""

    least: Estimate
    greatest: Estimate
    ratio: Interval
    compared: int


@dataclass(frozen=True, slots=True)
class Costs:
    """Sums over `n` records with a cost, of which `good` came to something: costs, squares, and costs of the good."""

    n: int
    good: int
    total: float
    squares: float
    total_good: float


def confidence_of_each(count: int) -> float:
    """Of one of so many intervals (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / count


def apart(estimates: Sequence[Estimate]) -> Apart | None:
    """None where there are not two, or where their ratio may be below the margin, or without end."""
    if len(estimates) < 2:
        return None
    ranked = sorted(estimates, key=lambda one: (one.value, one.name))
    least, greatest = ranked[0], ranked[-1]
    if least.interval.low <= 0 or greatest.interval.low < MARGIN * least.interval.high:
        return None
    ratio = Interval(greatest.interval.low / least.interval.high, greatest.interval.high / least.interval.low)
    return Apart(least, greatest, ratio, len(ranked))


def quantile(bins: Mapping[int, int], share: float, confidence: float) -> tuple[float, Interval] | None:
    """The quantile of values in logarithmic bins, all at least 0, with the interval between two of them that holds it.

    Of n values so many lie below the quantile as of n throws hit with that share: their ranks are the binomial's own
    quantiles, and no shape is assumed (David and Nagaraja 2003, 7.1). None for too few values. Bins are of 1 %.
    """
    from scipy.stats import binom

    n = sum(bins.values())
    low, high = int(binom.ppf((1 - confidence) / 2, n, share)), int(binom.isf((1 - confidence) / 2, n, share)) + 1
    if low < 1 or high > n:
        return None
    middle = _ranked(bins, max(1, math.ceil(share * n)))
    return _at(middle, 0.5), Interval(_at(_ranked(bins, low), 0), _at(_ranked(bins, high), 1))


def per_good(costs: Costs, confidence: float) -> tuple[float, Interval] | None:
    """What one good record costs, the costs of bad ones with it; None where it cannot be told, as where all is free.

    The ratio of two sums, the error of its logarithm by the delta method.
    """
    if costs.n < 2 or not costs.good or costs.total <= 0 or not math.isfinite(costs.squares):
        return None
    ratio = costs.total / costs.good
    residuals = costs.squares - 2 * ratio * costs.total_good + ratio**2 * costs.good
    error = math.sqrt(max(0.0, residuals) * costs.n / (costs.n - 1)) / costs.total
    reach = math.exp(reach_of(confidence) * error)
    return ratio, Interval(ratio / reach, ratio * reach)


def _ranked(bins: Mapping[int, int], rank: int) -> int:
    """The bin of the value with that rank, from 1."""
    passed = 0
    for index in sorted(bins):
        passed += bins[index]
        if passed >= rank:
            return index
    raise ValueError(f"rank {rank} of {passed} values")


def _at(index: int, part: float) -> float:
    """A place in a bin: its lower edge at 0, its upper at 1."""
    return 0.0 if index <= 0 else math.exp((index - LOG_ORIGIN + part) * LOG_STEP)
