"""Five-minute ticks of the day with a level of their own, such as those of a nightly job, and how they are learned.

A tick is of weekdays, of weekends, or of one day of the week. It is its own where days make a habit of it: the mean
square of the nearest three quarters of D days is above 16 / D variances, four standard errors of what most days share,
so that one day's trouble is none. Failing that, on one day of the week; or on some days more than others, above 40 / D
of all but the farthest. Its level is the mean of the days, its variance how far each is from the others: of a job that
is not as punctual, or as bad, every day, less is concluded, and as little ten minutes earlier and later.
Shapes: S series, C channels, T windows, D days, G groups of days, M ticks of a day, K ticks that are stored."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ragtide.drift.detectors import outlier_hours
from ragtide.drift.detectors.arrays import Flags, Floats, Integers, Numbers, ratio
from ragtide.drift.detectors.season import Cells
from ragtide.drift.stats.calendar import DAY_S, SATURDAY, WEEKDAYS, weekday_of

TICKS_PER_DAY = 288
DAY_KINDS = 2  # groups of days are weekdays and weekends,
DAY_GROUPS = DAY_KINDS + WEEKDAYS  # and then each day of the week
MAX_TICKS = 80  # of a channel
TICK_S = DAY_S // TICKS_PER_DAY
_NONE = -1


class Expected(NamedTuple):
    """What a window is expected to be [S, C]: its level, and how many times the variance of other windows it has."""

    level: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class RecurringTicks:
    """All [S, C, K]: which moments are their own (group * A_DAY + moment; -1: none), with what level and variance."""

    moment: Numbers
    level: Numbers
    variance: Numbers

    @classmethod
    def none(cls, series: int, channels: int) -> "RecurringTicks":
        """No moment is its own."""
        nothing = np.zeros((series, channels, DAY_GROUPS * TICKS_PER_DAY))
        return cls.from_clarity(nothing, nothing, nothing)

    @classmethod
    def from_clarity(cls, clear: Floats, level: Floats, variance: Floats) -> "RecurringTicks":
        """Of moments [S, C, GROUPS * A_DAY] those that are the most `clear`; none where that is 0."""
        moment = np.sort(np.argpartition(clear, -MAX_TICKS, axis=2)[:, :, -MAX_TICKS:], axis=2)
        clear, level, variance = (np.take_along_axis(array, moment, axis=2) for array in (clear, level, variance))
        kept = np.where(clear > 0, moment, _NONE)
        return cls(kept.astype(np.int16), level.astype(np.float32), variance.astype(np.float16))

    def expected(self, start: int, level: Floats) -> Expected:
        """Of the window that begins then, which by its hour would have the level [S, C]; its day of the week, which is
        behind weekdays and weekends, has the last word.
        """
        weekday, moment = weekday_of(start // DAY_S), start // TICK_S % TICKS_PER_DAY
        kind, day = (group * TICKS_PER_DAY + moment for group in (int(weekday >= SATURDAY), DAY_KINDS + weekday))
        found = Expected(level.copy(), np.ones(level.shape))
        at = np.nonzero((self.moment == kind) | (self.moment == day))
        found.level[at[:2]], found.variance[at[:2]] = self.level[at], self.variance[at]
        return found


_MIN_DAYS, _MANY_DAYS = 2, 5
_OWN_THRESHOLD, _NEAREST_SHARE = 16.0, 0.75
_FREQUENT_THRESHOLD, _ALL_DAYS = 40.0, 1.0
_HIGH_VARIANCE = 4.0  # times the usual variance
_WIDENING_TICKS = 2  # moments
_MIN_CLARITY = 1e-9
_MAX_VARIANCE = 6e4  # half precision ends there
_ROUNDS = 8  # of leaving moments out of the variance that others are judged by


@dataclass(frozen=True, slots=True)
class TimeOfDayFit:
    """What recurs; and of windows [S, C, T] the level that other days expect, and how many times the usual variance."""

    recurring: RecurringTicks
    out_of_sample: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class _DayCells:
    """Cells by moment [S, C, D, M]: means, how far off their hours' level, records (1 at least), whether it has any."""

    weekdays: Integers
    mean: Floats
    deviation: Floats
    records: Floats
    present: Flags

    def subset(self, series: Integers) -> "_DayCells":
        """Of these series."""
        off, records, present = self.deviation[series], self.records[series], self.present[series]
        return _DayCells(self.weekdays, self.mean[series], off, records, present)

    def members(self) -> list[Flags]:
        """Which days [D] each group has."""
        weekend = self.weekdays >= SATURDAY
        return [~weekend, weekend, *(self.weekdays == weekday for weekday in range(WEEKDAYS))]

    def by_day(self, groups: Numbers, own: Flags) -> Numbers:
        """What is of groups [S, C, G, M] for each day [S, C, D, M]: of its day of the week where that is its own."""
        day, kind = DAY_KINDS + self.weekdays, (self.weekdays >= SATURDAY).astype(np.int64)
        found: Numbers = np.where(own[:, :, day], groups[:, :, day], groups[:, :, kind])
        return found


@dataclass(frozen=True, slots=True)
class _Groups:
    """All [S, C, G, M]: how clearly a moment is its own (0: it is not), how many days saw it, level, variance."""

    clarity: Floats
    days: Floats
    level: Floats
    variance: Floats

    @property
    def is_own(self) -> Flags:
        """Which moments are their own."""
        return self.clarity > 0

    def to_recurring(self) -> RecurringTicks:
        """The clearest."""
        return RecurringTicks.from_clarity(*(_flat(array) for array in (self.clarity, self.level, self.variance)))


def fit_time_of_day(
    start: Integers, n: Floats, sums: Floats, out_of_sample: Floats, max_influence: Floats
) -> TimeOfDayFit:
    """Of windows n [S, T] and sums [S, C, T], of which the hours' levels on other days expect `out_of_sample` [S, C,
    T].

    `swing` [S, C]: by how much one record alone can move a sum.
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
    """How clearly moments are their own [S, C, G, M], and the variance of cells [S, C, D, M] that they are judged by:
    that of all others, which is known once the clearest were found.
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
    """a / n + b of cells [S, C, D, M], by least squares of n times the squares on n over the usual ones; at least as if
    one record of all went as far as it can.
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
    """How clearly moments are their own [S, C, G, M]: 0 where they are not. What few days do has to be more than one
    record can; and days of the week, of which there are fewest, have to go the same way.
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
    """Moments of single days of the week [S, C, 7, M] whose nearest day went farther than all others of most days do:
    where bursts come at any time of a fifth of the days, two weeks meet by chance.
    """
    other = np.where(days.by_day(own, own) | ~days.present, 0.0, square).max(axis=3)
    usual = outlier_hours.usual_extreme(other, np.asarray(days.present.any(axis=3)))
    found = np.zeros((*own.shape[:2], WEEKDAYS, TICKS_PER_DAY), bool)
    for weekday, of in enumerate(days.members()[DAY_KINDS:]):
        nearest = np.where(days.present[:, :, of], square[:, :, of], np.inf).min(axis=2, initial=np.inf)
        found[:, :, weekday] = nearest > usual[:, :, None]
    return found


def _distance(square: Floats, seen: Flags, least: float, share: float) -> Floats:
    """D times the mean square [S, C, D, M] of that share of D days, the nearest ones, and at most of all but one:
    [S, C, M], 0 where it is not above `least`.
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
    """With the mean of days, and in units of the variance the mean square by which each is off that of the others."""
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
    """Where one kind of day has moments of its own, so has the other. One that was seen once, or never, has the same
    ones, where that day was nearer to these than to its hours.
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
    """No more moments of their own than are kept."""
    least = np.partition(_flat(found.clarity), -MAX_TICKS, axis=2)[:, :, -MAX_TICKS, None, None]
    return replace(found, clarity=np.where(found.clarity >= least, found.clarity, 0.0))


def _widen(found: _Groups) -> _Groups:
    """Where days stray far, they may ten minutes earlier or later, and on the other kind of day."""
    kinds = np.s_[:, :, :DAY_KINDS]
    far = np.where(found.is_own & (found.variance > _HIGH_VARIANCE), found.variance, 0.0)[kinds].max(axis=2)
    wide = np.max([np.roll(far, by, axis=2) for by in range(-_WIDENING_TICKS, _WIDENING_TICKS + 1)], axis=0)[:, :, None]
    wide = np.where(found.days[kinds] >= _MIN_DAYS, wide, 0.0)
    clear, variance = found.clarity.copy(), found.variance.copy()
    clear[kinds] = np.where(wide > variance[kinds], np.maximum(clear[kinds], _MIN_CLARITY), clear[kinds])
    variance[kinds] = np.maximum(variance[kinds], wide)
    return replace(found, clarity=clear, variance=variance)


def _out_of_sample(found: _Groups, days: _DayCells, start: Integers, out_of_sample: Floats) -> tuple[Floats, Floats]:
    """Levels and variances of windows [S, C, T]: at moments of their own the mean of the other days."""
    own, level, count = (days.by_day(array, found.is_own) for array in (found.is_own, found.level, found.days))
    level = np.where(count < _MIN_DAYS, level, level - (days.mean - level) / np.maximum(count - 1, 1))
    times = np.where(own, days.by_day(found.variance, found.is_own), 1.0)
    at = start // TICK_S - start[0] // DAY_S * TICKS_PER_DAY
    own, level, times = (array.reshape(*own.shape[:2], -1)[:, :, at] for array in (own, level, times))
    return np.where(own, level, out_of_sample), times


def _flat(groups: Floats) -> Floats:
    """[S, C, G * M]."""
    return groups.reshape(*groups.shape[:2], -1)
