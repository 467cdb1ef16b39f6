"""Input and output of detectors: many series of one kind on one even grid of windows, as arrays [series, windows].

A window without records has n = 0; a window with a NaN counts as empty. Integers may have any width: `uint16` counts of
10,000 series x 4,032 windows take 77 MiB.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers, Numbers
from ragtide.drift.windows import LOG_ORIGIN, LOG_STEP

LEVELS = (0.5, 0.95)  # quantiles of a heavy-tailed metric's history whose exceedance is monitored


@dataclass(frozen=True, slots=True)
class WindowArrays:
    """Arrays [S, T, ...] over windows at `start` [T]: evenly spaced, ascending, in seconds since 1970."""

    start: Integers

    def __post_init__(self) -> None:
        arrays = _arrays_of(self)
        if self.start.ndim != 1 or (len(self.start) > 1 and (np.diff(self.start) != max(size_s(self.start), 1)).any()):
            raise ValueError("windows must start at evenly spaced, ascending times")
        shapes = [array.shape for array in arrays.values()]
        if any(shape[:2] != shapes[0][:2] or shape[1] != len(self.start) for shape in shapes):
            raise ValueError(f"arrays {shapes} do not fit {len(self.start)} windows")

    @property
    def series(self) -> int:
        """Number of series."""
        return len(next(iter(_arrays_of(self).values())))


@dataclass(frozen=True, slots=True)
class Scores(WindowArrays):
    """A bounded metric: records [S, T], their sum and sum of squares."""

    n: Numbers
    total: Numbers
    squares: Numbers


@dataclass(frozen=True, slots=True)
class Rates(WindowArrays):
    """A yes or no per record: records [S, T] and hits among them."""

    n: Numbers
    hits: Numbers


@dataclass(frozen=True, slots=True)
class HeavyTailed(WindowArrays):
    """A heavy-tailed metric (latency, cost): records [S, T] and how many lie in bins above `LEVELS` [S, T, 2]."""

    n: Numbers
    above: Numbers


@dataclass(frozen=True, slots=True)
class Categories(WindowArrays):
    """Labels of records: `counts` [S, T, C], with the same C for all series; 0 if a series lacks a label."""

    counts: Numbers


def quantile_bins(merged: Numbers) -> Integers:
    """Return the columns [S, 2] of histograms [S, B] with the quantiles `LEVELS`; of an empty one the last column."""
    up_to = merged.cumsum(axis=1)
    wanted = np.asarray(LEVELS) * up_to[:, -1:]
    found = (up_to[:, :, None] < wanted[:, None, :]).sum(axis=1)
    columns: Integers = np.where(up_to[:, -1:] > 0, found, merged.shape[1] - 1)
    return columns


def level_values(bins: Integers) -> Floats:
    """Return the upper edges of logarithmic bins, in the metric's unit: records above a level exceed it."""
    values: Floats = np.exp((bins + 1 - LOG_ORIGIN) * LOG_STEP)
    return values


def level_bin(value: float) -> int:
    """Return the bin with this upper edge: the inverse of `level_values`."""
    return round(math.log(value) / LOG_STEP) - 1 + LOG_ORIGIN


@dataclass(frozen=True, slots=True)
class RunResult:
    """Whether each series is in alarm after each window, and its log e-value: both [S, T]."""

    alarm: Flags
    evidence: Floats


Batch = TypeVar("Batch", bound=WindowArrays)


def cut(batch: Batch, windows: slice, series: slice = slice(None)) -> Batch:
    """Return views of some windows of some series."""
    cuts = {name: array[series, windows] for name, array in _arrays_of(batch).items()}
    return replace(batch, start=batch.start[windows], **cuts)


def size_s(start: Integers) -> int:
    """Return the window size in seconds; a single window is taken for five minutes."""
    return int(start[1] - start[0]) if len(start) > 1 else 300


def ratio(above: Numbers, below: Numbers) -> Floats:
    """Divide; where `below` is not positive, return `above`."""
    return above / np.where(below > 0, below, 1.0)


def masked_median(values: Floats, present: Flags) -> Floats:
    """Return the lower median of present values along the last axis; 0 if there are none."""
    ordered = np.sort(np.where(present, values, np.inf), axis=-1)
    middle = np.maximum(present.sum(axis=-1) - 1, 0) // 2
    found = np.take_along_axis(ordered, middle[..., None], axis=-1)[..., 0]
    return np.where(np.isfinite(found), found, 0.0)


def _arrays_of(batch: WindowArrays) -> dict[str, Numbers]:
    return {field.name: getattr(batch, field.name) for field in fields(batch) if field.name != "start"}
