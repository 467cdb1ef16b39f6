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
_STRIDE = (
    179  # prime to `_TICKS_PER_DAY`, and near their golden section: batches that follow each other learn far apart
)
_Integers = npt.NDArray[np.int64]
_Days = TypeVar("_Days", int, _Integers)


def tick_size(base_s: int) -> int:
    """The longest multiple of the base windows, of five minutes at most, that divides an hour; else the base itself."""
    sizes = range(_TICK_S // base_s * base_s, 0, -base_s)
    return next((size for size in sizes if HOUR_S % size == 0), base_s)


def floor(at: float, size_s: int) -> int:
    """The start of the stretch of that size that `at` lies in."""
    return int(at) // size_s * size_s


def ceil(at: float, size_s: int) -> int:
    """The least whole multiple that is not before `at`."""
    return -floor(-at, size_s)


def checkpoint_interval(lateness_s: float) -> int:
    """How far back a state is kept, where closed windows change for so long: whole hours, at least one."""
    return ceil(max(lateness_s, HOUR_S), HOUR_S)


def next_fit(number: int, at: int, tick_s: int) -> int:
    """The first tick from `at` on at which the batch of that number learns its baselines, once a day.

    Of any 288 numbers in a row no two learn in the same five minutes, so that no run learns much.
    """
    offset = number * _STRIDE % _TICKS_PER_DAY * _TICK_S
    after = ceil(at, tick_s) - tick_s  # a moment between two ticks is that of the later one
    return ceil(ceil(after + 1 - offset, DAY_S) + offset, tick_s)


def utc(at: int) -> datetime:
    """As an aware time."""
    return datetime.fromtimestamp(at, UTC)


def weekday_of(day: _Days) -> _Days:
    """Of days since 1970, 0 being Monday."""
    return (day + _THURSDAY) % WEEKDAYS


@overload
def is_weekend(at: int) -> bool: ...
@overload
def is_weekend(at: _Integers) -> npt.NDArray[np.bool_]: ...
def is_weekend(at: int | _Integers) -> bool | npt.NDArray[np.bool_]:
    """Whether these times lie on a Saturday or Sunday."""
    return (at // DAY_S + _THURSDAY) % WEEKDAYS >= SATURDAY
