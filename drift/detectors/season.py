"""The seasonal level of channels: (weekday | weekend) x hour of the day in UTC, shrunk; and weekly hours.

A cell is one hour of one day. level = grand + hour + kind of day + interaction, each effect e shrunk to
e * signal / (signal + variance of e). The variance comes from the differences between days; the signal is the variance
of the effects beyond it (method of moments). Between the centres of hours the level is interpolated linearly.
`weekly` hours, see `outlier_hours`, have the mean of their own cells instead, and do not influence other levels. The
level has steps at their ends, as jobs begin and end on the hour.
Shapes: S series, C channels, D days, T windows. Channels of a series share its record counts.
"""

from dataclasses import dataclass

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers
from ragtide.drift.detectors.arrays import masked_median, ratio
from ragtide.drift.stats import DAY_S, HOUR_S, HOURS, SATURDAY, WEEKDAYS, weekday_of

SLOTS = WEEKDAYS * HOURS  # of a week, from Monday on
SEASONAL_DAYS = 3  # of history; with fewer days there is one level


@dataclass(frozen=True, slots=True)
class Cells:
    """Records [S, D, 24] and sums [S, C, D, 24] of the hours of days, or of shorter cells; `days` since 1970 [D]."""

    days: Integers
    records: Floats
    sums: Floats

    @classmethod
    def of(cls, start: Integers, n: Floats, sums: Floats, a_day: int = HOURS) -> "Cells":
        """Sum windows n [S, T] and sums [S, C, T] in cells, `a_day` of them per day."""
        cell = start // (DAY_S // a_day)
        first_day, last_day = int(cell[0]) // a_day, int(cell[-1]) // a_day
        days = np.arange(first_day, last_day + 1)
        begins = np.flatnonzero(np.diff(cell, prepend=cell[0] - 1))
        places = cell[begins] - first_day * a_day
        records = np.zeros((n.shape[0], len(days) * a_day))
        records[:, places] = np.add.reduceat(n, begins, axis=1)
        added = np.zeros((*sums.shape[:2], len(days) * a_day))
        added[:, :, places] = np.add.reduceat(sums, begins, axis=2)
        return cls(days, records.reshape(len(n), len(days), a_day), added.reshape(*sums.shape[:2], len(days), a_day))

    @property
    def weekdays(self) -> Integers:
        """Weekday of each day [D]; 0 is Monday."""
        return weekday_of(self.days)

    def excluding(self, hours: Flags) -> "Cells":
        """Return cells without the records of these hours [S, D, 24]."""
        return Cells(self.days, np.where(hours, 0.0, self.records), np.where(hours[:, None], 0.0, self.sums))


def expected(level: Floats, weekly: Flags, start: Integers, size_s: int) -> Floats:
    """Return the level [S, C, T] at the middle of each window, from levels and weekly hours [S, C, SLOTS]."""
    position = (start + size_s / 2) / HOUR_S - 0.5  # of the window's middle among the centres of hours
    hour = np.floor(position).astype(np.int64)
    before = weekday_of(hour // HOURS) * HOURS + hour % HOURS
    after, between = (before + 1) % SLOTS, position - hour
    step = weekly[:, :, before] != weekly[:, :, after]
    share = np.where(step, between >= 0.5, between)
    found: Floats = level[:, :, before] * (1 - share) + level[:, :, after] * share
    return found


def levels(cells: Cells, seasonal: bool, weekly: Flags) -> Floats:
    """Fit levels [S, C, SLOTS] with weekly hours [S, 7, 24]; 0 for a series without records."""
    every = np.ones(len(cells.days), dtype=bool)
    return _set_weekly_hours(_fit_levels(_shared_cells(cells, weekly), seasonal, every), cells, weekly, every)


def out_of_sample(cells: Cells, seasonal: bool, weekly: Flags, start: Integers, size_s: int) -> Floats:
    """Return the expectation of each window [S, C, T] from all days but its own."""
    shared, steps = _shared_cells(cells, weekly), weekly.reshape(len(weekly), 1, SLOTS)
    day = start // DAY_S - cells.days[0]
    found = np.empty((*cells.sums.shape[:2], len(start)))
    for index in range(len(cells.days)):
        windows, others = day == index, np.arange(len(cells.days)) != index
        level = _set_weekly_hours(levels_without(shared, seasonal, index), cells, weekly, others)
        found[:, :, windows] = expected(level, steps, start[windows], size_s)
    return found


def levels_without(cells: Cells, seasonal: bool, day: int) -> Floats:
    """Fit levels [S, C, SLOTS] without one day; with it, if no other day has records."""
    used = np.arange(len(cells.days)) != day
    alone = (cells.records[:, used].sum(axis=(1, 2)) == 0)[:, None, None]
    found = _fit_levels(cells, seasonal, used)
    return np.where(alone, _fit_levels(cells, False, np.ones_like(used)), found) if alone.any() else found


def _shared_cells(cells: Cells, weekly: Flags) -> Cells:
    """Return the cells that levels of weekdays and weekends are learned from."""
    return cells.excluding(weekly[:, cells.weekdays]) if weekly.any() else cells


def _set_weekly_hours(level: Floats, cells: Cells, weekly: Flags, used: Flags) -> Floats:
    """Set weekly hours to the mean of their own cells, in place; unchanged if no day has records."""
    for weekday in np.flatnonzero(weekly.any(axis=(0, 2))):
        days, at = used & (cells.weekdays == weekday), slice(weekday * HOURS, (weekday + 1) * HOURS)
        records = cells.records[:, days].sum(axis=1)
        own = cells.sums[:, :, days].sum(axis=2) / np.maximum(records, 1.0)[:, None]
        level[:, :, at] = np.where((weekly[:, weekday] & (records > 0))[:, None], own, level[:, :, at])
    return level


def _fit_levels(cells: Cells, seasonal: bool, used: Flags) -> Floats:
    records, sums = cells.records[:, used], cells.sums[:, :, used]
    weekend = cells.weekdays[used] >= SATURDAY
    total = records.sum(axis=(1, 2))[:, None]
    grand = sums.sum(axis=(2, 3)) / np.maximum(total, 1.0)
    if not seasonal:
        return np.broadcast_to(grand[:, :, None], (*grand.shape, SLOTS)).copy()
    weight = _weights(records)[:, None]  # [S, 1, D, 24]
    value = np.where(weight > 0, sums / np.maximum(records, 1.0)[:, None], 0.0)
    grand = _mean(value, weight, (2, 3))
    rest = value - grand[:, :, None, None]
    spread = _cell_variance(rest, weight, weekend)
    hour = _shrink(_mean(rest, weight, 2), spread, _thinness(weight, 2))
    rest = rest - hour[:, :, None]
    day = _day_effects(rest, weight, weekend)
    found = np.empty((*grand.shape, WEEKDAYS, HOURS))
    for kind, own in enumerate((~weekend, weekend)):
        both = rest[:, :, own] - day[:, :, kind, None, None]
        alike = _shrink(_mean(both, weight[:, :, own], 2), spread, _thinness(weight[:, :, own], 2))
        at = slice(SATURDAY, None) if kind else slice(SATURDAY)
        found[:, :, at] = (grand[:, :, None] + hour + day[:, :, kind, None] + alike)[:, :, None]
    return found.reshape(*grand.shape, SLOTS)


def _weights(records: Floats) -> Floats:
    """Return records, at most those of the median hour: a burst is evidence of one day only."""
    flat = records.reshape(len(records), -1)
    return np.minimum(records, masked_median(flat, flat > 0)[:, None, None])


def _day_effects(rest: Floats, weight: Floats, weekend: Flags) -> Floats:
    """Return the shrunk effects of weekdays and weekends [S, C, 2]."""
    of_day = weight.sum(axis=3)
    value = _mean(rest, weight, 3)
    mean = np.zeros((*rest.shape[:2], 2))
    thin = np.full((*weight.shape[:2], 2), np.inf)
    scatter, freedom = np.zeros(rest.shape[:2]), np.zeros(weight.shape[:2])
    for kind, own in enumerate((~weekend, weekend)):
        mean[:, :, kind] = _mean(value[:, :, own], of_day[:, :, own], 2)
        thin[:, :, kind] = _thinness(of_day[:, :, own], 2)
        scatter += (of_day[:, :, own] * (value[:, :, own] - mean[:, :, kind, None]) ** 2).sum(axis=2)
        freedom += _freedom(of_day[:, :, own], 2)
    return _shrink(mean, ratio(scatter, freedom), thin)


def _cell_variance(rest: Floats, weight: Floats, weekend: Flags) -> Floats:
    """Return the variance [S, C] of a cell about the mean of its hour and kind of day."""
    scatter, freedom = np.zeros(rest.shape[:2]), np.zeros(weight.shape[:2])
    for own in (~weekend, weekend):
        mean = _mean(rest[:, :, own], weight[:, :, own], 2)
        scatter += (weight[:, :, own] * (rest[:, :, own] - mean[:, :, None]) ** 2).sum(axis=(2, 3))
        freedom += _freedom(weight[:, :, own], 2).sum(axis=2)
    return ratio(scatter, freedom)


def _shrink(effect: Floats, variance: Floats, thinness: Floats) -> Floats:
    """Shrink effects [S, C, G] of cells with variance [S, C]; 0 for groups without records."""
    known = np.isfinite(thinness)
    noise = variance[:, :, None] * np.where(known, thinness, 0.0)
    groups = np.maximum(known.sum(axis=2), 1)
    signal = np.maximum(((effect**2 - noise) * known).sum(axis=2) / groups, 0.0)[:, :, None]
    whole = signal + noise
    return np.where(known & (whole > 0), ratio(effect * signal, whole), 0.0)


def _mean(value: Floats, weight: Floats, axes: int | tuple[int, ...]) -> Floats:
    return ratio((value * weight).sum(axis=axes), weight.sum(axis=axes))


def _thinness(weight: Floats, axis: int) -> Floats:
    """Return the variance of a weighted mean relative to one cell; infinite without cells."""
    total = weight.sum(axis=axis)
    return np.where(total > 0, (weight**2).sum(axis=axis) / np.where(total > 0, total, 1.0) ** 2, np.inf)


def _freedom(weight: Floats, axis: int) -> Floats:
    total = weight.sum(axis=axis)
    found: Floats = total - ratio((weight**2).sum(axis=axis), total)
    return found
