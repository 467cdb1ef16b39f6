"""What detectors read and say: many series of one kind on one even grid of windows, as arrays [series, windows].

A window without records has n = 0, a window with a count or sum that is no number counts as one. Integers may be of any
width: `uint16` counts of 10,000 series x 4,032 windows take 77 MiB.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ragtide.drift.windows.histogram import LOG_ORIGIN, LOG_STEP

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]  # integers or floats of any width
LEVELS = (0.5, 0.95)  # of a heavy-tailed metric's history: the quantiles whose exceedance is watched


@dataclass(frozen=True, slots=True)
class Scores:
    """A bounded metric: records [S, T], their sum and sum of squares. `start` [T]: even, in seconds since 1970."""

    start: Integers
    n: Numbers
    total: Numbers
    squares: Numbers

    def __post_init__(self) -> None:
        _check_grid(self.start, self.n, self.total, self.squares)


@dataclass(frozen=True, slots=True)
class Rates:
    """A yes or no of each record: records [S, T] and those that say yes."""

    start: Integers
    n: Numbers
    hits: Numbers

    def __post_init__(self) -> None:
        _check_grid(self.start, self.n, self.hits)


@dataclass(frozen=True, slots=True)
class HeavyTailed:
    """A heavy-tailed metric (latency, cost): records [S, T] and how many lie above each of the history's `LEVELS`.

    `above` [S, T, 2]: in bins above the level's bin, see `Histograms.above`; or from one query, given the levels.
    """

    start: Integers
    n: Numbers
    above: Numbers

    def __post_init__(self) -> None:
        _check_grid(self.start, self.n, self.above)


@dataclass(frozen=True, slots=True)
class Categories:
    """Labels of records: `counts` [S, T, C], C the same for all series, zeros where a series lacks a label."""

    start: Integers
    counts: Numbers

    def __post_init__(self) -> None:
        _check_grid(self.start, self.counts)


@dataclass(frozen=True, slots=True)
class Histograms:
    """A heavy-tailed metric: `counts` [S, T, B] by bins of `ragtide.drift.windows.histogram`, from bin `first` on."""

    start: Integers
    counts: Numbers
    first: int

    def __post_init__(self) -> None:
        _check_grid(self.start, self.counts)

    def levels(self) -> Integers:
        """Bins [S, 2] that hold the quantiles `LEVELS` of all windows together."""
        return quantile_bins(self.counts.sum(axis=1, dtype=np.int64)) + self.first

    def above(self, levels: Integers) -> HeavyTailed:
        """Records above the levels' bins [S, 2]."""
        up_to = self.counts.cumsum(axis=2, dtype=np.int64)
        columns = np.clip(levels - self.first, -1, self.counts.shape[2] - 1)[:, None, :]
        below = np.take_along_axis(up_to, np.maximum(columns, 0), axis=2)
        return HeavyTailed(self.start, up_to[:, :, -1], up_to[:, :, -1:] - np.where(columns < 0, 0, below))


def quantile_bins(merged: Numbers) -> Integers:
    """Columns [S, 2] of merged histograms [S, B] that hold the quantiles `LEVELS`; the last one where all is empty."""
    up_to = merged.cumsum(axis=1)
    wanted = np.asarray(LEVELS) * up_to[:, -1:]
    found = (up_to[:, :, None] < wanted[:, None, :]).sum(axis=1)
    columns: Integers = np.where(up_to[:, -1:] > 0, found, merged.shape[1] - 1)
    return columns


def level_values(bins: Integers) -> Floats:
    """The upper edges of logarithmic bins: what a record above a level exceeds, in the metric's unit."""
    values: Floats = np.exp((bins + 1 - LOG_ORIGIN) * LOG_STEP)
    return values


def level_bin(value: float) -> int:
    """The bin whose upper edge it is: what `level_values` was given."""
    return round(math.log(value) / LOG_STEP) - 1 + LOG_ORIGIN


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run over windows found: whether each series is in alarm after each window [S, T], and the log e-value."""

    alarm: Flags
    evidence: Floats


Batch = TypeVar("Batch", Scores, Rates, HeavyTailed, Categories, Histograms)


def cut(batch: Batch, windows: slice, series: slice = slice(None)) -> Batch:
    """Views of some windows of some series."""
    arrays = {field.name: getattr(batch, field.name) for field in fields(batch)}
    cuts = {name: array[series, windows] for name, array in arrays.items() if np.ndim(array) > 1}
    return replace(batch, start=batch.start[windows], **cuts)


def size_s(start: Integers) -> int:
    """Seconds of a window; a single window is taken for five minutes."""
    return int(start[1] - start[0]) if len(start) > 1 else 300


def _check_grid(start: Integers, *arrays: Numbers) -> None:
    if start.ndim != 1 or (len(start) > 1 and (np.diff(start) != max(size_s(start), 1)).any()):
        raise ValueError("windows must start at evenly spaced, ascending times")
    if any(array.shape[:2] != arrays[0].shape[:2] or array.shape[1] != len(start) for array in arrays):
        raise ValueError(f"arrays {[array.shape for array in arrays]} do not fit {len(start)} windows")
