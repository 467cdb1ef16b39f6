"""Is a day asked otherwise than the days of a reference, by more than these differ among each other? Pure.

Both samples have the same mix of hours, so that the rhythm of a day is no difference. Each day of the reference is
compared with the others of its kind (weekday, weekend) in the same way: what a day like them may be is told by how much
they differ, t = (area - mean) / (s sqrt(1 + 1 / days)) with days - 1 degrees of freedom.
"""

import math
from dataclasses import dataclass

import numpy as np

from drift.detectors.baseline import FALSE_ALARMS_A_DAY
from drift.detectors.season import HOUR_S, HOURS, WEEKDAYS
from drift.detectors.series import Flags, Floats, Integers
from drift.questions.lots import Lot, joined
from drift.questions.two_samples import Apart, apart
from drift.watching import grid

MARGIN = 0.02  # of the area, beyond a half: nobody's business
LEAST_DAYS = 4
_LEAST_SPREAD = 2e-3  # of an area: days that are all alike are not told apart by a rounding
_STAYS = 0.05
_SEED = 1
_SATURDAY = 5


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Two samples of the same mix of hours, where there is one, and how far they are apart; None: too few to tell."""

    new: Lot
    old: Lot
    apart: Apart | None

    def worst(self, most: int) -> tuple[str, ...]:
        """Trace ids of new questions that look least like the old ones, each question once."""
        if self.apart is None:
            return ()
        found: dict[bytes, str] = {}
        for place in np.argsort(-np.nan_to_num(self.apart.log_odds, nan=-np.inf), kind="stable"):
            found.setdefault(self.new.vectors[place].tobytes(), self.new.trace_ids[place])
        return tuple(found.values())[:most]


def compared(new: Lot, old: Lot, by_hour: bool) -> Compared:
    """New questions against old ones, as many of either."""
    of_new, of_old = _matched(new.at, old.at, by_hour)
    new, old = new.where(of_new), old.where(of_old)
    return Compared(new, old, apart(new.vectors, old.vectors, _SEED))


def usual_areas(days: list[Lot], starts: Integers, by_hour: bool) -> Floats:
    """The area of each day [D] against the others of its kind; NaN where that cannot be told."""
    found = np.full(len(days), np.nan)
    for place, one in enumerate(days):
        others = [days[other] for other in np.flatnonzero(alike(starts, int(starts[place]))) if other != place]
        told = compared(one, joined(others), by_hour).apart if others else None
        found[place] = np.nan if told is None else told.area
    return found


def alike(starts: Integers, day: int) -> Flags:
    """Days of the same kind as this one, weekday or weekend; all in seconds since 1970."""
    same: Flags = is_weekend(starts) == is_weekend(np.array([day]))
    return same


def is_weekend(starts: Integers) -> Flags:
    """Whether days that begin then are of a weekend."""
    found: Flags = (starts // grid.DAY_S + 3) % WEEKDAYS >= _SATURDAY  # 1970 began on a Thursday
    return found


def is_unlike(told: Apart | None, usual: Floats, margin: float, already: bool = False) -> bool | None:
    """Whether a day differs, for sure by more than the `margin` and more than days like it do; None: cannot be told.

    Where the day before was unlike `already`, one in twenty is sure enough: a kind of day of which there are few tells
    less, and would end what is not over.
    """
    level = _STAYS if already else FALSE_ALARMS_A_DAY
    from scipy.special import ndtri, stdtr

    known = usual[np.isfinite(usual)]
    if told is None or len(known) < LEAST_DAYS:
        return None
    beyond = told.area - 0.5 - margin
    if beyond < -float(ndtri(level)) * told.error:
        return False
    spread = max(float(known.std(ddof=1)), _LEAST_SPREAD) * math.sqrt(1 + 1 / len(known))
    return bool(stdtr(len(known) - 1, -(told.area - known.mean()) / spread) <= level)


def _matched(new: Integers, old: Integers, by_hour: bool) -> tuple[Integers, Integers]:
    """Places of as many of either from each hour of the day, by lot."""
    rng = np.random.default_rng(_SEED)
    hours = [at // HOUR_S % HOURS if by_hour else np.zeros_like(at) for at in (new, old)]
    places: tuple[list[Integers], list[Integers]] = ([], [])
    for hour in range(HOURS):
        both = [np.flatnonzero(of == hour) for of in hours]
        most = min(map(len, both))
        for found, some in zip(places, both, strict=True):
            found.append(np.sort(rng.permutation(some)[:most]))
    return np.sort(np.concatenate(places[0])), np.sort(np.concatenate(places[1]))
