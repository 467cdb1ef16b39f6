"""Find outlier hours in a history: incidents, which are excluded, and weekly hours, which have their own level.

An incident lies more than 6 robust sigmas from the expectation of all other days. If every week deviates at the same
hour by 4 sigmas in the same direction (a job of Sunday nights), that hour of the week gets its own level. Then only
weeks that deviate more than twice as far as the nearest week are incidents. An hour is no incident either if it is off
on three days and on more than a quarter of the weekdays, weekend days or all days. Shapes as in `season`.
"""

from dataclasses import dataclass

import numpy as np

from ragtide.drift.array_types import Flags, Floats
from ragtide.drift.detectors import season
from ragtide.drift.detectors.arrays import masked_median
from ragtide.drift.detectors.season import Cells
from ragtide.drift.stats import HOURS, SATURDAY, WEEKDAYS

OUTLIER_SIGMAS = 6.0
MAX_OUTLIERS = 0.15  # share of hours; with more, they are usual for the series
_FREQUENT_DAYS, _FREQUENT_SHARE = 3, 0.25  # days, and share of weekdays, weekend days or all days
_FREQUENT_AT_ANY_HOUR = 0.2  # share of the days
_WEEKLY_SIGMAS = 4.0  # that each week must reach
_MIN_WEEKS = 2
_SIGMA_OF_MAD = 1.4826


@dataclass(frozen=True, slots=True)
class OddHours:
    """Incidents [S, D, 24], and hours of the week [S, 7, 24], from Monday on, with their own level."""

    outliers: Flags
    weekly: Flags


def find_odd_hours(cells: Cells, seasonal: bool, max_influence: Floats) -> OddHours:
    """Find incidents in any channel, and weekly hours. Hours that are off often are no incidents.

    Two passes: in the first, odd hours influence the level that others are compared with, so that after two odd
    Sundays, Saturdays look odd too. `max_influence` [S, C]: the largest change of a sum by one record; a deviation
    that one record explains is neither incident nor weekly hour.
    """
    present = cells.records > 0
    odd = OddHours(np.zeros(present.shape, bool), np.zeros((len(present), WEEKDAYS, HOURS), bool))
    for _ in range(2):
        rest = _residuals(cells, cells.excluding(odd.outliers | odd.weekly[:, cells.weekdays]), seasonal)
        noise = _noise(rest, cells.records, max_influence)
        weekly = odd.weekly
        if seasonal:
            least = _WEEKLY_SIGMAS * noise
            weekly = _beyond_chance(_weekly_hours(rest, least, present, cells), rest, least, present, cells)
        usual = _nearest_week(rest, weekly, present, cells)
        far = np.abs(rest - usual) > np.maximum(OUTLIER_SIGMAS * noise, np.abs(usual))
        off = (far & present[:, None]).any(axis=1)
        many = off.sum(axis=(1, 2)) > MAX_OUTLIERS * present.sum(axis=(1, 2))
        odd = OddHours(off & ~many[:, None, None], weekly)
    return OddHours(odd.outliers & ~_frequent_hours(odd.outliers, present, cells)[:, None], odd.weekly)


def _frequent_hours(off: Flags, present: Flags, cells: Cells) -> Flags:
    """Find hours of the day [S, 24] that are off often, as of a job that is not punctual.

    If some hour or other is off on a fifth of the days, these are all hours.
    """
    days, seen = (hours.any(axis=2).sum(axis=1) for hours in (off, present))
    often = (days >= _FREQUENT_DAYS) & (days >= _FREQUENT_AT_ANY_HOUR * seen)
    found = np.repeat(often[:, None], HOURS, axis=1)
    weekend = cells.weekdays >= SATURDAY
    for kind in (weekend, ~weekend, weekend | ~weekend):
        days = off[:, kind].sum(axis=1)
        found |= (days >= _FREQUENT_DAYS) & (days > _FREQUENT_SHARE * present[:, kind].sum(axis=1))
    return found


def _residuals(cells: Cells, kept: Cells, seasonal: bool) -> Floats:
    """Return how far each cell [S, C, D, 24] lies from the expectation of the kept cells of other days."""
    records = np.maximum(cells.records, 1.0)[:, None]
    found = np.empty(cells.sums.shape)
    for index, weekday in enumerate(cells.weekdays):
        level = season.levels_without(kept, seasonal, index)[:, :, weekday * HOURS : (weekday + 1) * HOURS]
        found[:, :, index] = cells.sums[:, :, index] / records[:, :, index] - level
    return found


def _noise(rest: Floats, records: Floats, max_influence: Floats) -> Floats:
    """Return the robust sigma of cells [S, C, D, 24], at least the influence of one record."""
    seen = np.broadcast_to((records > 0)[:, None], rest.shape)
    flat = (*rest.shape[:2], -1)
    sigma = _SIGMA_OF_MAD * masked_median(np.abs(rest).reshape(flat), seen.reshape(flat))
    return np.maximum(sigma[:, :, None, None], max_influence[:, :, None, None] / np.maximum(records, 1.0)[:, None])


def _weekly_hours(rest: Floats, least: Floats, present: Flags, cells: Cells) -> Flags:
    """Find hours of the week [S, 7, 24] that every week deviate by more than `least` [S, C, D, 24], one way."""
    found = np.zeros((len(rest), WEEKDAYS, HOURS), bool)
    for weekday in range(WEEKDAYS):
        days = cells.weekdays == weekday
        seen, of_day, far = present[:, None, days], rest[:, :, days], least[:, :, days]
        up, down = (((way * of_day > far) | ~seen).all(axis=2) for way in (1, -1))
        found[:, weekday] = ((up | down) & (seen.sum(axis=2) >= _MIN_WEEKS)).any(axis=1)
    return found


def _beyond_chance(weekly: Flags, rest: Floats, least: Floats, present: Flags, cells: Cells) -> Flags:
    """Keep weekly hours [S, 7, 24] whose nearest week deviates more than any other hour of most days.

    If hours are as far off at any time on a fifth of the days, two weeks coincide by chance.
    """
    far = np.abs(rest) / least * present[:, None]
    other = np.where(weekly[:, None, cells.weekdays], 0.0, far).max(axis=(1, 3))
    usual = usual_extreme(other, np.asarray(present.any(axis=2)))
    found = weekly.copy()
    for weekday in np.flatnonzero(weekly.any(axis=(0, 2))):
        days = cells.weekdays == weekday
        nearest = np.where(present[:, None, days], far[:, :, days], np.inf).min(axis=2).max(axis=1)
        found[:, weekday] &= nearest > usual[:, None]
    return found


def usual_extreme(of_days: Floats, seen: Flags) -> Floats:
    """Return the value that a fifth of the days [..., D] with records reach, three at least; 0 if there are fewer."""
    often = np.maximum(np.ceil(_FREQUENT_AT_ANY_HOUR * seen.sum(axis=-1)), _FREQUENT_DAYS).astype(np.int64)
    ordered = -np.sort(-of_days, axis=-1)
    found = np.take_along_axis(ordered, np.minimum(often, of_days.shape[-1])[..., None] - 1, axis=-1)[..., 0]
    return np.where(often <= of_days.shape[-1], found, 0.0)


def _nearest_week(rest: Floats, weekly: Flags, present: Flags, cells: Cells) -> Floats:
    """Return the deviation of the nearest week in weekly hours [S, C, D, 24]; 0 in all others."""
    found = np.zeros(rest.shape)
    for weekday in np.flatnonzero(weekly.any(axis=(0, 2))):
        days = cells.weekdays == weekday
        of_day = rest[:, :, days]
        nearest = np.where(present[:, None, days], np.abs(of_day), np.inf).argmin(axis=2)[:, :, None]
        least = np.take_along_axis(of_day, nearest, axis=2)
        found[:, :, days] = np.where(weekly[:, None, None, weekday], least, 0.0)
    return found
