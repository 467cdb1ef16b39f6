"""Simulated series: records drawn from a plan, and the aggregates of windows that production has of them.

Every record is drawn, none from a histogram: what is simulated is exact but for the quantiles' grid (see `plans`), and
rivals that read records get them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.drift.calibration import shifts
from benchmarks.drift.changes import Kind
from benchmarks.drift.clock import HISTORY
from benchmarks.drift.plans import CategoryPlan, LatencyPlan, Plan, RatePlan, Records, ScorePlan
from ragtide.drift.array_types import Floats, Integers, Numbers
from ragtide.drift.detectors.arrays import quantile_bins
from ragtide.drift.windows.histogram import LOG_ORIGIN, LOG_STEP

MISSING: Records = np.empty(0, np.float32)


@dataclass(frozen=True)
class Label:
    """What a series is: `change` names what happens at window `at`, and counts as found before window `until`."""

    index: int
    kind: Kind
    shape: str
    regime: str
    change: str | None
    at: int
    until: int


@dataclass(frozen=True)
class Series:
    """Windows [T] of a series: records of each, their values one after another, or their labels' counts [T, C].

    `values` are scores, failures (0 or 1), or natural logarithms of seconds, single precision; none for categories.
    """

    label: Label
    n: Integers
    values: Records
    counts: Integers

    @cached_property
    def ends(self) -> Integers:
        """Where each window's values begin and end [T + 1]."""
        return np.concatenate([[0], np.cumsum(self.n)])

    @cached_property
    def measured(self) -> Records:
        """Values in the metric's own unit: a latency in seconds."""
        return np.exp(self.values) if self.label.kind == "latency" else self.values

    @cached_property
    def total(self) -> Floats:
        """The sum of each window's values [T]."""
        return _sums(self.measured, self.ends)

    @cached_property
    def squares(self) -> Floats:
        """The sum of their squares [T]."""
        return _sums(self.measured.astype(np.float64) ** 2, self.ends)

    @cached_property
    def means(self) -> Floats:
        """The mean of each window [T]; NaN where it has no records."""
        means: Floats = np.divide(self.total, self.n, out=np.full(len(self.n), np.nan), where=self.n > 0)
        return means

    def above(self) -> Integers:
        """How many of each window's latencies lie in bins above those of the history's levels [T, 2]."""
        bins = LOG_ORIGIN + np.floor(self.values / np.float32(LOG_STEP)).astype(np.int32)
        first = int(bins.min())
        merged = np.bincount(bins[: self.ends[HISTORY]] - first, minlength=int(bins.max()) - first + 1)
        levels = quantile_bins(merged[None])[0] + first
        return np.stack([_sums(bins > level, self.ends).astype(np.int64) for level in levels], axis=1)


@dataclass(frozen=True)
class Aggregates:
    """Windows [T] without their records: `counts` [T, C] are of labels, or of latencies above the history's levels."""

    label: Label
    n: Integers
    total: Floats
    squares: Floats
    counts: Integers

    @classmethod
    def of(cls, series: Series) -> "Aggregates":
        """What a detector of this kind reads; sums are 0 where there are no values."""
        counts = series.above() if series.label.kind == "latency" else series.counts
        if not len(series.values):
            return cls(series.label, series.n, np.zeros(len(series.n)), np.zeros(len(series.n)), counts)
        return cls(series.label, series.n, series.total, series.squares, counts)


def sampled(label: Label, plan: Plan, rng: np.random.Generator) -> Series:
    """Records drawn from the plan."""
    if isinstance(plan, CategoryPlan):
        return Series(label, plan.n, MISSING, rng.multinomial(plan.n, plan.shares))
    window = np.repeat(np.arange(len(plan.n)), plan.n)
    values = _values(plan, window, rng)
    return Series(label, plan.n, values, np.empty((len(plan.n), 0), np.int64))


def _values(plan: ScorePlan | RatePlan | LatencyPlan, window: Integers, rng: np.random.Generator) -> Records:
    if isinstance(plan, RatePlan):
        failed: Records = (rng.random(len(window)) < plan.probability[window]).astype(np.float32)
        return failed
    values: Records = plan.base.astype(np.float32)[rng.integers(0, len(plan.base), len(window), np.uint16)]
    if isinstance(plan, LatencyPlan):
        values += plan.shift.astype(np.float32)[window]
        values[_some(plan.slow, window, rng)] += np.float32(np.log(5))
        return values
    if (plan.scale != 1).any():
        values *= plan.scale.astype(np.float32)[window]
    values += shifts(plan).astype(np.float32)[window]
    bad = _some(plan.bad, window, rng)
    values[bad] = 0.3 * rng.random(len(bad), np.float32)
    if plan.step:
        values = np.round(values / np.float32(plan.step)) * np.float32(plan.step)
    np.clip(values, 0, 1, out=values)
    return values


def _some(share: Floats, window: Integers, rng: np.random.Generator) -> Integers:
    """Places of records taken at random, of each window this share."""
    begin = int(np.searchsorted(window, np.flatnonzero(share)[0])) if share.any() else len(window)
    return begin + np.flatnonzero(rng.random(len(window) - begin) < share[window[begin:]])


def _sums(values: Numbers, ends: Integers) -> Floats:
    sums, there = np.zeros(len(ends) - 1), np.diff(ends) > 0
    sums[there] = np.add.reduceat(values, ends[:-1][there], dtype=np.float64)
    return sums
