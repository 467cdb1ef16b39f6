"""Histograms of windows: 100 equal bins for bounded metrics, logarithmic ones of 1 % for the others.

The edge of a bounded bin lies on the good side, so that the share of records beyond a threshold is exact if the
threshold is a whole hundredth of the range. Better higher: bin i holds [edge i, edge i+1), bin 100 only the highest
value. Better lower: bin i holds (edge i-1, edge i], bin 0 only the lowest value. `contents` has the same in SQL."""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from ragtide.drift.stats import Interval, Number
from ragtide.evaluators.spec import Better, Metric

HISTOGRAM_BINS = 100
LOG_STEP = math.log(1.01)
LOG_ORIGIN = 100_000  # bin of 1.0; so large that bins are ordered as values for every finite double


@dataclass(frozen=True, slots=True)
class Scale:
    """How values of a metric fall into bins: equal ones, or logarithmic ones if an end of its range is infinite."""

    low: float
    high: float
    better: Better

    @classmethod
    def of(cls, metric: Metric) -> "Scale":
        """Return the scale of a declared metric."""
        return cls(metric.low, metric.high, metric.better)

    @property
    def bounded(self) -> bool:
        """Whether the bins are equal."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def edge(self, index: int) -> float:
        """Return the value of an edge, 0 to 100, of a bounded scale."""
        return self.low + (self.high - self.low) * index / HISTOGRAM_BINS

    def bin(self, value: float) -> int:
        """Return the bin of a value."""
        if not self.bounded:
            return _log_bin(value)
        position = (value - self.low) / (self.high - self.low) * HISTOGRAM_BINS
        if self.better == "higher":
            index = math.floor(position)
            index += (value >= self.edge(index + 1)) - (value < self.edge(index))
        else:
            index = math.ceil(position)
            index += (value > self.edge(index)) - (value <= self.edge(index - 1))
        return min(max(index, 0), HISTOGRAM_BINS)

    def snap(self, threshold: float) -> float:
        """Return the nearest threshold for which shares are exact: an edge, if the scale is bounded."""
        if not self.bounded:
            return threshold
        return self.edge(round((threshold - self.low) / (self.high - self.low) * HISTOGRAM_BINS))

    def below(self, bins: Mapping[int, Number], min_value: float) -> Number | int:
        """Count records below `min_value`, snapped, or add up another number of them. Equal values never count."""
        edge = self.bin(self.snap(min_value))
        # Better lower: a value equal to the edge shares its bin with lower ones, and none of them counts.
        return sum(count for index, count in bins.items() if index < edge)

    def above(self, bins: Mapping[int, Number], max_value: float) -> Number | int:
        """Count records above `max_value`, snapped. A value equal to it never counts."""
        edge = self.bin(self.snap(max_value))
        return sum(count for index, count in bins.items() if index > edge)


def _log_bin(value: float) -> int:
    if value == 0:
        return 0
    index = LOG_ORIGIN + math.floor(math.log(abs(value)) / LOG_STEP)
    return index if value > 0 else -index


FAR_BIN = 10**9  # beyond every bin


class BinBounds(NamedTuple):
    """Records in a bin below `min_bin` or above `max_bin` are bad."""

    min_bin: int
    max_bin: int


def bin_bounds(scale: Scale, min_value: float | None, max_value: float | None) -> BinBounds:
    """Return the bins of bounds, snapped; at least one bound is given."""
    return BinBounds(
        -FAR_BIN if min_value is None else scale.bin(scale.snap(min_value)),
        FAR_BIN if max_value is None else scale.bin(scale.snap(max_value)),
    )


def count_out_of_bounds(min_bin: int | str, max_bin: int | str) -> str:
    """Expression on rows of `windows`: the records below or above these bins, which are numbers or expressions."""
    return f"arraySum((bin, times) -> if(bin < {min_bin} OR bin > {max_bin}, times, 0), mapKeys(bins), mapValues(bins))"


def is_out_of_bounds(value: str, scale: Scale, min_value: float | None, max_value: float | None) -> str:
    """Condition: the expression is below `min_value` or above `max_value`, snapped as the bins are."""
    sides = [f"{value} < {scale.snap(min_value)!r}"] if min_value is not None else []
    sides += [f"{value} > {scale.snap(max_value)!r}"] if max_value is not None else []
    return f"({' OR '.join(sides) or 'false'})"


def quantile(bins: Mapping[int, int], share: float, confidence: float) -> tuple[float, Interval] | None:
    """A quantile of values >= 0 in logarithmic bins of 1 %, and its interval; None for too few values.

    How many of n values lie below the quantile is binomial, so the ends are the values at the ranks of its quantiles;
    no distribution is assumed (David and Nagaraja 2003, 7.1).
    """
    from scipy.stats import binom

    n = sum(bins.values())
    low, high = int(binom.ppf((1 - confidence) / 2, n, share)), int(binom.isf((1 - confidence) / 2, n, share)) + 1
    if low < 1 or high > n:
        return None
    indices = sorted(bins)
    ranks = list(accumulate(bins[index] for index in indices))

    def value(rank: int, part: float) -> float:
        """The value at a rank: the lower edge of its bin at part 0, the upper edge at 1."""
        index = indices[bisect_left(ranks, rank)]
        return 0.0 if index <= 0 else math.exp((index - LOG_ORIGIN + part) * LOG_STEP)

    return value(max(1, math.ceil(share * n)), 0.5), Interval(value(low, 0), value(high, 1))
