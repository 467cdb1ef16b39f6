"""Moments of the day with a level of their own, such as those of a job of a quarter of an hour every night.

A moment is five minutes of weekdays, of weekends, or of one day of the week. `moments` learns which ones.
Shapes: S series, C channels, K moments that are kept.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drift.detectors.season import DAY_S, SATURDAY, WEEKDAYS, weekday_of
from drift.detectors.series import Floats, Numbers

A_DAY = 288
KINDS = 2  # groups of days are weekdays and weekends,
GROUPS = KINDS + WEEKDAYS  # and then each day of the week
MOST = 80  # of a channel
MOMENT_S = DAY_S // A_DAY
_NONE = -1


class Usual(NamedTuple):
    """What a window is expected to be [S, C]: its level, and how many times the variance of other windows it has."""

    level: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class Recurring:
    """All [S, C, K]: which moments are their own (group * A_DAY + moment; -1: none), with what level and variance."""

    moment: Numbers
    level: Numbers
    variance: Numbers

    @classmethod
    def none(cls, series: int, channels: int) -> "Recurring":
        """No moment is its own."""
        nothing = np.zeros((series, channels, GROUPS * A_DAY))
        return cls.clearest(nothing, nothing, nothing)

    @classmethod
    def clearest(cls, clear: Floats, level: Floats, variance: Floats) -> "Recurring":
        """Of moments [S, C, GROUPS * A_DAY] those that are the most `clear`; none where that is 0."""
        moment = np.sort(np.argpartition(clear, -MOST, axis=2)[:, :, -MOST:], axis=2)
        clear, level, variance = (np.take_along_axis(array, moment, axis=2) for array in (clear, level, variance))
        kept = np.where(clear > 0, moment, _NONE)
        return cls(kept.astype(np.int16), level.astype(np.float32), variance.astype(np.float16))

    def usual(self, start: int, level: Floats) -> Usual:
        """Of the window that begins then, which by its hour would have the level [S, C]; its day of the week, which is
        behind weekdays and weekends, has the last word.
        """
        weekday, moment = weekday_of(start // DAY_S), start // MOMENT_S % A_DAY
        kind, day = (group * A_DAY + moment for group in (int(weekday >= SATURDAY), KINDS + weekday))
        found = Usual(level.copy(), np.ones(level.shape))
        at = np.nonzero((self.moment == kind) | (self.moment == day))
        found.level[at[:2]], found.variance[at[:2]] = self.level[at], self.variance[at]
        return found
