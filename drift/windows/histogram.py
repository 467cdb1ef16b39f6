"""Histograms of windows: 100 equal bins for bounded metrics, logarithmic ones of 1 % for the others.

A bounded bin's edge lies on the good side, so that the share of records beyond a threshold of a whole hundredth of the
range is exact. Better higher: bin i holds [edge i, edge i+1), bin 100 the highest value alone. Better lower: bin i
holds (edge i-1, edge i], bin 0 the lowest value alone. The SQL in `contents` computes the same numbers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ragtide.evaluators.spec import Better, Metric

BINS = 100
LOG_STEP = math.log(1.01)
LOG_ORIGIN = 100_000  # bin of 1.0; every finite double's logarithm fits beside it, so that bins are ordered as values


@dataclass(frozen=True, slots=True)
class Scale:
    """How values of one metric fall into bins; an infinite end makes it logarithmic."""

    low: float
    high: float
    better: Better

    @classmethod
    def of(cls, metric: Metric) -> "Scale":
        """The scale of a declared metric."""
        return cls(metric.low, metric.high, metric.better)

    @property
    def bounded(self) -> bool:
        """Whether the bins are equal ones."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def edge(self, index: int) -> float:
        """The value of an edge of a bounded scale, 0 to 100."""
        return self.low + (self.high - self.low) * index / BINS

    def bin(self, value: float) -> int:
        """The bin that a value falls into."""
        if not self.bounded:
            return _log_bin(value)
        position = (value - self.low) / (self.high - self.low) * BINS
        if self.better == "higher":
            index = math.floor(position)
            index += (value >= self.edge(index + 1)) - (value < self.edge(index))
        else:
            index = math.ceil(position)
            index += (value > self.edge(index)) - (value <= self.edge(index - 1))
        return min(max(index, 0), BINS)

    def snap(self, threshold: float) -> float:
        """The threshold that shares are exact for: the nearest edge of a bounded scale."""
        if not self.bounded:
            return threshold
        return self.edge(round((threshold - self.low) / (self.high - self.low) * BINS))

    def below(self, bins: Mapping[int, int], min_value: float) -> int:
        """Records whose value is less than `min_value`, snapped. Never counts a value equal to it."""
        edge = self.bin(self.snap(min_value))
        # Better lower: the edge itself shares its bin with lesser values; an equal value must not count.
        return sum(count for index, count in bins.items() if index < edge)

    def above(self, bins: Mapping[int, int], max_value: float) -> int:
        """Records whose value is more than `max_value`, snapped. Never counts a value equal to it."""
        edge = self.bin(self.snap(max_value))
        return sum(count for index, count in bins.items() if index > edge)


def _log_bin(value: float) -> int:
    if value == 0:
        return 0
    index = LOG_ORIGIN + math.floor(math.log(abs(value)) / LOG_STEP)
    return index if value > 0 else -index


FAR = 10**9  # beyond every bin


class BinBounds(NamedTuple):
    """Records in a bin below `lowest` or above `highest` are on the wrong side."""

    min_bin: int
    max_bin: int


def bin_bounds(scale: Scale, min_value: float | None, max_value: float | None) -> BinBounds:
    """Of lines, at least one, snapped as shares are exact for."""
    return BinBounds(
        -FAR if min_value is None else scale.bin(scale.snap(min_value)),
        FAR if max_value is None else scale.bin(scale.snap(max_value)),
    )


def count_out_of_bounds(min_bin: int | str, max_bin: int | str) -> str:
    """Expression on rows of `windows`: how many records lie below or above these bins, numbers or expressions."""
    return f"arraySum((bin, times) -> if(bin < {min_bin} OR bin > {max_bin}, times, 0), mapKeys(bins), mapValues(bins))"


def is_out_of_bounds(value: str, scale: Scale, min_value: float | None, max_value: float | None) -> str:
    """Condition: the expression's value is less than `least` or more than `greatest`, snapped as the bins are."""
    sides = [f"{value} < {scale.snap(min_value)!r}"] if min_value is not None else []
    sides += [f"{value} > {scale.snap(max_value)!r}"] if max_value is not None else []
    return f"({' OR '.join(sides) or 'false'})"
