"""When the simulation's windows are: 14 known-good days, then 7 watched ones, five minutes a window."""

from datetime import UTC, datetime

import numpy as np

from ragtide.drift.array_types import Floats, Integers

WINDOW_S = 300
PER_DAY = 288
HISTORY = 14 * PER_DAY
WATCHED = 7 * PER_DAY
WINDOWS = HISTORY + WATCHED
_FIRST_S = int(datetime(2026, 1, 5, tzinfo=UTC).timestamp())  # a Monday

START: Integers = _FIRST_S + np.arange(WINDOWS, dtype=np.int64) * WINDOW_S
DAY: Integers = np.arange(WINDOWS) // PER_DAY
HOUR: Floats = np.arange(WINDOWS) % PER_DAY / 12  # of the day, at a window's start
WEEKEND: Floats = (DAY % 7 >= 5).astype(np.float64)
