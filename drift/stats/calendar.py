"""Calendar arithmetic in UTC: ticks of five minutes, hours, days and kinds of day. Times in seconds since 1970."""

from datetime import UTC, datetime
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

HOUR_S = 3600
DAY_S = 86_400
HOURS = 24  # of a day
WEEKDAYS = 7  # from Monday on
SATURDAY = 5
_THURSDAY = 3  # 1 January 1970
_TICK_S = 300
_TICKS_PER_DAY = DAY_S // _TICK_S
_STRIDE = 179  # prime to `_TICKS_PER_DAY` and near its golden section, so consecutive batches learn far apart
_Integers = npt.NDArray[np.int64]
_Days = TypeVar("_Days", int, _Integers)


def tick_size(base_s: int) -> int:
    """Return the longest multiple of the base window, up to five minutes, that divides an hour; else the base."""
    sizes = range(_TICK_S // base_s * base_s, 0, -base_s)
    return next((size for size in sizes if HOUR_S % size == 0), base_s)


def floor(at: float, size_s: int) -> int:
    """Round down to a multiple of `size_s`."""
    return int(at) // size_s * size_s


def ceil(at: float, size_s: int) -> int:
    """Round up to a multiple of `size_s`."""
    return -floor(-at, size_s)


def checkpoint_interval(lateness_s: float) -> int:
    """Return how far back a checkpoint must lie, in seconds: the lateness in whole hours, at least one."""
    return ceil(max(lateness_s, HOUR_S), HOUR_S)


def next_fit(number: int, at: int, tick_s: int) -> int:
    """Return the first tick from `at` on at which this batch learns its baselines, once a day.

    No two of 288 consecutive batches learn in the same five minutes, so no run learns many.
    """
    offset = number * _STRIDE % _TICKS_PER_DAY * _TICK_S
    after = ceil(at, tick_s) - tick_s  # a time between two ticks belongs to the later one
    return ceil(ceil(after + 1 - offset, DAY_S) + offset, tick_s)


def utc(at: int) -> datetime:
    """Convert seconds since 1970 to an aware time."""
    return datetime.fromtimestamp(at, UTC)


def weekday_of(day: _Days) -> _Days:
    """Return the weekday of days since 1970; 0 is Monday."""
    return (day + _THURSDAY) % WEEKDAYS


@overload
def is_weekend(at: int) -> bool: ...
@overload
def is_weekend(at: _Integers) -> npt.NDArray[np.bool_]: ...
def is_weekend(at: int | _Integers) -> bool | npt.NDArray[np.bool_]:
    """Tell whether times lie on a Saturday or Sunday."""
    return (at // DAY_S + _THURSDAY) % WEEKDAYS >= SATURDAY
