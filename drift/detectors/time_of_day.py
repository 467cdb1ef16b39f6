"""Learn five-minute ticks of the day with a level of their own, such as those of a nightly job.

A tick belongs to weekdays, to weekends, or to one day of the week. It gets its own level if the mean square of the
nearest three quarters of D days exceeds 16 / D variances: four standard errors of what most days share, so that one
bad day does not count. Otherwise if one day of the week does so, or if all days but the farthest exceed 40 / D.
Its level is the mean of the days; its variance comes from their differences. So a job that is irregular in time or
size gives less evidence, also ten minutes earlier and later.
Shapes: S series, C channels, T windows, D days, G groups of days, M ticks of a day, K ticks that are stored."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers, Numbers
from ragtide.drift.detectors import outlier_hours
from ragtide.drift.detectors.arrays import ratio
from ragtide.drift.detectors.season import Cells
from ragtide.drift.stats import DAY_S, SATURDAY, WEEKDAYS, weekday_of

TICKS_PER_DAY = 288
DAY_KINDS = 2  # groups of days are weekdays and weekends,
DAY_GROUPS = DAY_KINDS + WEEKDAYS  # and then each day of the week
MAX_TICKS = 80  # of a channel
TICK_S = DAY_S // TICKS_PER_DAY
_NONE = -1
_MIN_DAYS, _MANY_DAYS = 2, 5
_OWN_THRESHOLD, _NEAREST_SHARE = 16.0, 0.75
_FREQUENT_THRESHOLD, _ALL_DAYS = 40.0, 1.0
_HIGH_VARIANCE = 4.0  # times the usual variance
_WIDENING_TICKS = 2  # ticks
_MIN_CLARITY = 1e-9
_MAX_VARIANCE = 6e4  # half precision ends there
_ROUNDS = 8  # of excluding ticks from the variance that others are judged by


class Expected(NamedTuple):
    """Expectation of a window [S, C]: level, and variance relative to other windows."""

    level: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class RecurringTicks:
    """Ticks with their own level [S, C, K]: `moment` is group * TICKS_PER_DAY + tick, or -1; level; variance."""

    moment: Numbers
    level: Numbers
    variance: Numbers

    @classmethod
    def none(cls, series: int, channels: int) -> "RecurringTicks":
        """Return no ticks."""
        nothing = np.zeros((series, channels, DAY_GROUPS * TICKS_PER_DAY))
        return cls.from_clarity(nothing, nothing, nothing)

    @classmethod
    def from_clarity(cls, clear: Floats, level: Floats, variance: Floats) -> "RecurringTicks":
        """Select the clearest ticks of [S, C, DAY_GROUPS * TICKS_PER_DAY], none where `clear` is 0."""
        moment = np.sort(np.argpartition(clear, -MAX_TICKS, axis=2)[:, :, -MAX_TICKS:], axis=2)
        clear, level, variance = (np.take_along_axis(array, moment, axis=2) for array in (clear, level, variance))
        kept = np.where(clear > 0, moment, _NONE)
        return cls(kept.astype(np.int16), level.astype(np.float32), variance.astype(np.float16))

    def expected(self, start: int, level: Floats) -> Expected:
        """Return the expectation of the window at `start`, given its hour's level [S, C].

        Ticks of a day of the week come after those of weekdays and weekends, and so override them.
        """
        weekday, moment = weekday_of(start // DAY_S), start // TICK_S % TICKS_PER_DAY
        kind, day = (group * TICKS_PER_DAY + moment for group in (int(weekday >= SATURDAY), DAY_KINDS + weekday))
        found = Expected(level.copy(), np.ones(level.shape))
        at = np.nonzero((self.moment == kind) | (self.moment == day))
        found.level[at[:2]], found.variance[at[:2]] = self.level[at], self.variance[at]
        return found


@dataclass(frozen=True, slots=True)
class TimeOfDayFit:
    """Recurring ticks, and of windows [S, C, T] the out-of-sample level and the variance relative to the usual one."""

    recurring: RecurringTicks
    out_of_sample: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class _DayCells:
    """Cells by tick [S, C, D, M]: means, deviations from the hour's level, records (at least 1), and `present`."""

    weekdays: Integers
    mean: Floats
    deviation: Floats
    records: Floats
    present: Flags

    def subset(self, series: Integers) -> "_DayCells":
        """Select series."""
        off, records, present = self.deviation[series], self.records[series], self.present[series]
        return _DayCells(self.weekdays, self.mean[series], off, records, present)

    def members(self) -> list[Flags]:
        """Return which days [D] belong to each group."""
        weekend = self.weekdays >= SATURDAY
        return [~weekend, weekend, *(self.weekdays == weekday for weekday in range(WEEKDAYS))]

    def by_day(self, groups: Numbers, own: Flags) -> Numbers:
        """Return values of days [S, C, D, M] from groups [S, C, G, M]: of the weekday if own, else of its kind."""
        day, kind = DAY_KINDS + self.weekdays, (self.weekdays >= SATURDAY).astype(np.int64)
        return np.where(own[:, :, day], groups[:, :, day], groups[:, :, kind])


@dataclass(frozen=True, slots=True)
class _Groups:
    """Ticks of groups [S, C, G, M]: clarity (0: no level of its own), days with records, level, variance."""

    clarity: Floats
    days: Floats
    level: Floats
    variance: Floats

    @property
    def is_own(self) -> Flags:
        """Which ticks have their own level."""
        return self.clarity > 0

    def to_recurring(self) -> RecurringTicks:
        """Return the clearest ticks."""
        return RecurringTicks.from_clarity(*(_flat(array) for array in (self.clarity, self.level, self.variance)))


def fit_time_of_day(
    start: Integers, n: Floats, sums: Floats, out_of_sample: Floats, max_influence: Floats
) -> TimeOfDayFit:
    """Learn recurring ticks from windows n [S, T], sums [S, C, T] and their out-of-sample levels [S, C, T].

    `max_influence` [S, C]: the largest change of a sum by one record.
    """
    cells = Cells.of(start, n, sums, TICKS_PER_DAY)
    off = Cells.of(start, n, sums - n[:, None] * out_of_sample, TICKS_PER_DAY).sums
    records = np.broadcast_to(np.maximum(cells.records, 1.0)[:, None], off.shape)
    seen = np.broadcast_to(cells.records[:, None] > 0, off.shape)
    days = _DayCells(cells.weekdays, cells.sums / records, off / records, records, seen)
    clear, variance = _find_own(days, max_influence)
    found = _retain_clearest(_carry_over(_group_levels(days, variance, clear), days))
    return TimeOfDayFit(_widen(found).to_recurring(), *_out_of_sample(found, days, start, out_of_sample))


def _find_own(days: _DayCells, max_influence: Floats) -> tuple[Floats, Floats]:
    """Return the clarity of ticks [S, C, G, M] and the variance of cells [S, C, D, M] that they are judged by.

    The variance is that of all other ticks, hence the rounds.
    """
    clear = np.zeros((*days.deviation.shape[:2], DAY_GROUPS, TICKS_PER_DAY))
    variance, series = np.empty(days.deviation.shape), np.arange(len(clear))
    for _ in range(_ROUNDS):
        some, before = days.subset(series), clear[series] > 0
        variance[series] = now = _variance(some, ~some.by_day(before, before), max_influence[series])
        clear[series] = found = _clarity(some, now, max_influence[series])
        series = series[((found > 0) != before).any(axis=(1, 2, 3))]
    return clear, variance


def _variance(days: _DayCells, usual: Flags, max_influence: Floats) -> Floats:
    """Fit the variance a / n + b of cells [S, C, D, M]: least squares of n times squared deviations on n.

    Only usual cells count. The fit includes one record with the largest influence.
    """
    present = (days.present & usual).astype(np.float64)
    n, y = days.records * present, days.records * days.deviation**2 * present
    count, total = np.maximum(present.sum(axis=(2, 3)), 1.0), np.maximum(n.sum(axis=(2, 3)), 1.0)
    mean_n, mean_y = total / count, y.sum(axis=(2, 3)) / count + max_influence**2 / total
    scatter = np.einsum("scdm,scdm->sc", n, days.records) / count - mean_n**2
    slope = np.einsum("scdm,scdm->sc", y, days.records) / count - mean_y * mean_n
    b = np.clip(np.where(scatter > 0, ratio(slope, scatter), 0.0), 0.0, mean_y / mean_n)
    a = np.maximum(mean_y - b * mean_n, max_influence**2 / total)
    found: Floats = a[:, :, None, None] / days.records + b[:, :, None, None]
    return found


def _clarity(days: _DayCells, variance: Floats, max_influence: Floats) -> Floats:
    """Return the clarity of ticks [S, C, G, M]; 0: no level of its own.

    With few days, deviations must exceed the influence of one record. Days of the week, with fewest days, must all
    deviate the same way.
    """
    noise = variance + (max_influence[:, :, None, None] / days.records) ** 2
    square, more = (days.deviation**2 / array * days.present for array in (variance, noise))
    members = days.members()
    found = np.zeros((*square.shape[:2], DAY_GROUPS, TICKS_PER_DAY))
    for kind, of in enumerate(members[:DAY_KINDS]):
        judged = square if of.sum() >= _MANY_DAYS else more
        found[:, :, kind] = _distance(judged[:, :, of], days.present[:, :, of], _OWN_THRESHOLD, _NEAREST_SHARE)
    for group, of in enumerate(members[DAY_KINDS:], DAY_KINDS):
        off, seen = days.deviation[:, :, of], days.present[:, :, of]
        alike = ((off > 0) | ~seen).all(axis=2) | ((off < 0) | ~seen).all(axis=2)
        alike &= found[:, :, int(group - DAY_KINDS >= SATURDAY)] == 0
        found[:, :, group] = _distance(more[:, :, of] * alike[:, :, None], seen, _OWN_THRESHOLD, _NEAREST_SHARE)
    found[:, :, DAY_KINDS:] *= _beyond_chance(days, found > 0, more)
    for kind, of in enumerate(members[:DAY_KINDS]):
        one_day = (found[:, :, DAY_KINDS + np.unique(days.weekdays[of])] > 0).any(axis=2)
        often = _distance(more[:, :, of], days.present[:, :, of], _FREQUENT_THRESHOLD, _ALL_DAYS)
        found[:, :, kind] = np.maximum(found[:, :, kind], np.where(one_day, 0.0, often))
    return found


def _beyond_chance(days: _DayCells, own: Flags, square: Floats) -> Flags:
    """Tell which ticks of weekdays [S, C, 7, M] deviate, on their nearest day, more than all others of most days.

    If bursts come at any time on a fifth of the days, two weeks coincide by chance.
    """
    other = np.where(days.by_day(own, own) | ~days.present, 0.0, square).max(axis=3)
    usual = outlier_hours.usual_extreme(other, np.asarray(days.present.any(axis=3)))
    found = np.zeros((*own.shape[:2], WEEKDAYS, TICKS_PER_DAY), bool)
    for weekday, of in enumerate(days.members()[DAY_KINDS:]):
        nearest = np.where(days.present[:, :, of], square[:, :, of], np.inf).min(axis=2, initial=np.inf)
        found[:, :, weekday] = nearest > usual[:, :, None]
    return found


def _distance(square: Floats, seen: Flags, least: float, share: float) -> Floats:
    """Return D times the mean square [S, C, M] of the nearest `share` of D days, at most of all but one.

    0 where it is not above `least`.
    """
    days = seen.sum(axis=2)
    found = np.zeros(days.shape)
    at = np.nonzero((days >= _MIN_DAYS) & (square.sum(axis=2) > least))  # or the nearest are not
    ordered = np.sort(np.where(seen, square, np.inf).transpose(0, 1, 3, 2)[at], axis=1)
    nearest = np.minimum(np.floor(share * days[at]), days[at] - 1)
    counted = np.arange(ordered.shape[1]) < nearest[:, None]
    far = days[at] * np.where(counted, ordered, 0.0).sum(axis=1) / nearest
    found[at] = np.where(far > least, far, 0.0)
    return found


def _group_levels(days: _DayCells, variance: Floats, clear: Floats) -> _Groups:
    """Add the mean of the days, and the mean square difference of each day from the others in units of the variance."""
    count, level, times = (np.zeros(clear.shape) for _ in range(3))
    for group, of in enumerate(days.members()):
        seen, mean = days.present[:, :, of], days.mean[:, :, of]
        many = seen.sum(axis=2)
        at = np.maximum(many, 1)
        count[:, :, group], level[:, :, group] = many, (mean * seen).sum(axis=2) / at
        apart = (mean - level[:, :, group, None]) * (many / np.maximum(many - 1, 1))[:, :, None]
        times[:, :, group] = (apart**2 / variance[:, :, of] * seen).sum(axis=2) / at
    return _Groups(clear, count, level, np.clip(times, 1.0, _MAX_VARIANCE))


def _carry_over(found: _Groups, days: _DayCells) -> _Groups:
    """Give one kind of day the own ticks of the other.

    A kind of day with one day or none takes their level too, if that day was nearer to it than to its hour's level.
    """
    clear, level, variance = found.clarity.copy(), found.level.copy(), found.variance.copy()
    for kind, of in enumerate(days.members()[:DAY_KINDS]):
        other, count = 1 - kind, found.days[:, :, kind]
        off = np.abs((days.deviation[:, :, of] * days.present[:, :, of]).sum(axis=2))
        same = (count == 0) | (count == 1) & (np.abs(level[:, :, kind] - found.level[:, :, other]) < off)
        also = found.is_own[:, :, other] & ~found.is_own[:, :, kind] & (same | (count >= _MIN_DAYS))
        clear[:, :, kind][also] = np.where(same, found.clarity[:, :, other], _MIN_CLARITY)[also]
        for array, before in ((level, found.level), (variance, found.variance)):
            array[:, :, kind][also & same] = before[:, :, other][also & same]
    return _Groups(clear, found.days, level, variance)


def _retain_clearest(found: _Groups) -> _Groups:
    """Drop all but the clearest `MAX_TICKS` ticks."""
    least = np.partition(_flat(found.clarity), -MAX_TICKS, axis=2)[:, :, -MAX_TICKS, None, None]
    return replace(found, clarity=np.where(found.clarity >= least, found.clarity, 0.0))


def _widen(found: _Groups) -> _Groups:
    """Extend a high variance to ten minutes earlier and later, and to the other kind of day."""
    kinds = np.s_[:, :, :DAY_KINDS]
    far = np.where(found.is_own & (found.variance > _HIGH_VARIANCE), found.variance, 0.0)[kinds].max(axis=2)
    wide = np.max([np.roll(far, by, axis=2) for by in range(-_WIDENING_TICKS, _WIDENING_TICKS + 1)], axis=0)[:, :, None]
    wide = np.where(found.days[kinds] >= _MIN_DAYS, wide, 0.0)
    clear, variance = found.clarity.copy(), found.variance.copy()
    clear[kinds] = np.where(wide > variance[kinds], np.maximum(clear[kinds], _MIN_CLARITY), clear[kinds])
    variance[kinds] = np.maximum(variance[kinds], wide)
    return replace(found, clarity=clear, variance=variance)


def _out_of_sample(found: _Groups, days: _DayCells, start: Integers, out_of_sample: Floats) -> tuple[Floats, Floats]:
    """Return levels and variances of windows [S, C, T]; at own ticks the level is the mean of the other days."""
    own, level, count = (days.by_day(array, found.is_own) for array in (found.is_own, found.level, found.days))
    level = np.where(count < _MIN_DAYS, level, level - (days.mean - level) / np.maximum(count - 1, 1))
    times = np.where(own, days.by_day(found.variance, found.is_own), 1.0)
    at = start // TICK_S - start[0] // DAY_S * TICKS_PER_DAY
    own, level, times = (array.reshape(*own.shape[:2], -1)[:, :, at] for array in (own, level, times))
    return np.where(own, level, out_of_sample), times


def _flat(groups: Floats) -> Floats:
    """Reshape to [S, C, G * M]."""
    return groups.reshape(*groups.shape[:2], -1)
