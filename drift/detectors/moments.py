"""Which moments of the day have a level of their own: learned from how far days go from what their hours expect.

A moment is its own where days make a habit of it: the mean square of the nearest three quarters of D days is above
16 / D variances, four standard errors of what most days share, so that one day's trouble is none. Failing that, on one
day of the week; or on some days more than others, above 40 / D of all but the farthest. Its level is the mean of the
days, its variance how far each is from the others: of a job that is not as punctual, or as bad, every day, less is
concluded, and as little ten minutes earlier and later.
Shapes: S series, C channels, T windows, D days, G groups of days, M moments of a day.
"""

from dataclasses import dataclass, replace

import numpy as np

from drift.detectors import incidents
from drift.detectors.recurring import A_DAY, GROUPS, KINDS, MOMENT_S, MOST, Recurring
from drift.detectors.season import DAY_S, SATURDAY, WEEKDAYS, Cells
from drift.detectors.series import Flags, Floats, Integers, Numbers

_LEAST_DAYS, _MANY_DAYS = 2, 5
_HABIT, _MOST_DAYS = 16.0, 0.75
_OFTEN, _ALL_DAYS = 40.0, 1.0
_STRAYING = 4.0  # times the usual variance
_EARLIER = 2  # moments
_LEAST_CLEAR = 1e-9
_MOST_VARIANCE = 6e4  # half precision ends there
_ROUNDS = 8  # of leaving moments out of the variance that others are judged by


@dataclass(frozen=True, slots=True)
class Habits:
    """What recurs; and of windows [S, C, T] the level that other days expect, and how many times the usual variance."""

    recurring: Recurring
    unseen: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class _Days:
    """Cells by moment [S, C, D, M]: means, how far off their hours' level, records (1 at least), whether it has any."""

    weekdays: Integers
    mean: Floats
    off: Floats
    records: Floats
    seen: Flags

    def some(self, series: Integers) -> "_Days":
        """Of these series."""
        off, records, seen = self.off[series], self.records[series], self.seen[series]
        return _Days(self.weekdays, self.mean[series], off, records, seen)

    def members(self) -> list[Flags]:
        """Which days [D] each group has."""
        weekend = self.weekdays >= SATURDAY
        return [~weekend, weekend, *(self.weekdays == weekday for weekday in range(WEEKDAYS))]

    def of(self, groups: Numbers, own: Flags) -> Numbers:
        """What is of groups [S, C, G, M] for each day [S, C, D, M]: of its day of the week where that is its own."""
        day, kind = KINDS + self.weekdays, (self.weekdays >= SATURDAY).astype(np.int64)
        found: Numbers = np.where(own[:, :, day], groups[:, :, day], groups[:, :, kind])
        return found


@dataclass(frozen=True, slots=True)
class _Groups:
    """All [S, C, G, M]: how clearly a moment is its own (0: it is not), how many days saw it, level, variance."""

    clear: Floats
    days: Floats
    level: Floats
    variance: Floats

    @property
    def own(self) -> Flags:
        """Which moments are their own."""
        return self.clear > 0

    def kept(self) -> Recurring:
        """The clearest."""
        return Recurring.clearest(*(_flat(array) for array in (self.clear, self.level, self.variance)))


def learn(start: Integers, n: Floats, sums: Floats, unseen: Floats, swing: Floats) -> Habits:
    """Of windows n [S, T] and sums [S, C, T], of which the hours' levels on other days expect `unseen` [S, C, T].

    `swing` [S, C]: by how much one record alone can move a sum.
    """
    cells = Cells.of(start, n, sums, A_DAY)
    off = Cells.of(start, n, sums - n[:, None] * unseen, A_DAY).sums
    records = np.broadcast_to(np.maximum(cells.records, 1.0)[:, None], off.shape)
    seen = np.broadcast_to(cells.records[:, None] > 0, off.shape)
    days = _Days(cells.weekdays, cells.sums / records, off / records, records, seen)
    clear, variance = _judged(days, swing)
    found = _clearest(_carried_over(_groups(days, variance, clear), days))
    return Habits(_widened(found).kept(), *_unseen(found, days, start, unseen))


def _judged(days: _Days, swing: Floats) -> tuple[Floats, Floats]:
    """How clearly moments are their own [S, C, G, M], and the variance of cells [S, C, D, M] that they are judged by:
    that of all others, which is known once the clearest were found.
    """
    clear = np.zeros((*days.off.shape[:2], GROUPS, A_DAY))
    variance, series = np.empty(days.off.shape), np.arange(len(clear))
    for _ in range(_ROUNDS):
        some, before = days.some(series), clear[series] > 0
        variance[series] = now = _variance(some, ~some.of(before, before), swing[series])
        clear[series] = found = _clear(some, now, swing[series])
        series = series[((found > 0) != before).any(axis=(1, 2, 3))]
    return clear, variance


def _variance(days: _Days, usual: Flags, swing: Floats) -> Floats:
    """a / n + b of cells [S, C, D, M], by least squares of n times the squares on n over the usual ones; at least as if
    one record of all went as far as it can.
    """
    there = (days.seen & usual).astype(np.float64)
    n, y = days.records * there, days.records * days.off**2 * there
    count, total = np.maximum(there.sum(axis=(2, 3)), 1.0), np.maximum(n.sum(axis=(2, 3)), 1.0)
    mean_n, mean_y = total / count, y.sum(axis=(2, 3)) / count + swing**2 / total
    scatter = np.einsum("scdm,scdm->sc", n, days.records) / count - mean_n**2
    slope = np.einsum("scdm,scdm->sc", y, days.records) / count - mean_y * mean_n
    b = np.clip(_ratio(slope, scatter), 0.0, mean_y / mean_n)
    a = np.maximum(mean_y - b * mean_n, swing**2 / total)
    found: Floats = a[:, :, None, None] / days.records + b[:, :, None, None]
    return found


def _clear(days: _Days, variance: Floats, swing: Floats) -> Floats:
    """How clearly moments are their own [S, C, G, M]: 0 where they are not. What few days do has to be more than one
    record can; and days of the week, of which there are fewest, have to go the same way.
    """
    noise = variance + (swing[:, :, None, None] / days.records) ** 2
    square, more = (days.off**2 / array * days.seen for array in (variance, noise))
    members = days.members()
    found = np.zeros((*square.shape[:2], GROUPS, A_DAY))
    for kind, of in enumerate(members[:KINDS]):
        judged = square if of.sum() >= _MANY_DAYS else more
        found[:, :, kind] = _far(judged[:, :, of], days.seen[:, :, of], _HABIT, _MOST_DAYS)
    for group, of in enumerate(members[KINDS:], KINDS):
        off, seen = days.off[:, :, of], days.seen[:, :, of]
        alike = ((off > 0) | ~seen).all(axis=2) | ((off < 0) | ~seen).all(axis=2)
        alike &= found[:, :, int(group - KINDS >= SATURDAY)] == 0
        found[:, :, group] = _far(more[:, :, of] * alike[:, :, None], seen, _HABIT, _MOST_DAYS)
    found[:, :, KINDS:] *= _beyond_chance(days, found > 0, more)
    for kind, of in enumerate(members[:KINDS]):
        one_day = (found[:, :, KINDS + np.unique(days.weekdays[of])] > 0).any(axis=2)
        often = _far(more[:, :, of], days.seen[:, :, of], _OFTEN, _ALL_DAYS)
        found[:, :, kind] = np.maximum(found[:, :, kind], np.where(one_day, 0.0, often))
    return found


def _beyond_chance(days: _Days, own: Flags, square: Floats) -> Flags:
    """Moments of single days of the week [S, C, 7, M] whose nearest day went farther than all others of most days do:
    where bursts come at any time of a fifth of the days, two weeks meet by chance.
    """
    other = np.where(days.of(own, own) | ~days.seen, 0.0, square).max(axis=3)
    usual = incidents.nth_largest(other, incidents.habit_days(np.asarray(days.seen.any(axis=3))))
    found = np.zeros((*own.shape[:2], WEEKDAYS, A_DAY), bool)
    for weekday, of in enumerate(days.members()[KINDS:]):
        nearest = np.where(days.seen[:, :, of], square[:, :, of], np.inf).min(axis=2, initial=np.inf)
        found[:, :, weekday] = nearest > usual[:, :, None]
    return found


def _far(square: Floats, seen: Flags, least: float, share: float) -> Floats:
    """D times the mean square [S, C, D, M] of that share of D days, the nearest ones, and at most of all but one:
    [S, C, M], 0 where it is not above `least`.
    """
    days = seen.sum(axis=2)
    found = np.zeros(days.shape)
    at = np.nonzero((days >= _LEAST_DAYS) & (square.sum(axis=2) > least))  # or the nearest are not
    ordered = np.sort(np.where(seen, square, np.inf).transpose(0, 1, 3, 2)[at], axis=1)
    nearest = np.minimum(np.floor(share * days[at]), days[at] - 1)
    counted = np.arange(ordered.shape[1]) < nearest[:, None]
    far = days[at] * np.where(counted, ordered, 0.0).sum(axis=1) / nearest
    found[at] = np.where(far > least, far, 0.0)
    return found


def _groups(days: _Days, variance: Floats, clear: Floats) -> _Groups:
    """With the mean of days, and in units of the variance the mean square by which each is off that of the others."""
    count, level, times = (np.zeros(clear.shape) for _ in range(3))
    for group, of in enumerate(days.members()):
        seen, mean = days.seen[:, :, of], days.mean[:, :, of]
        many = seen.sum(axis=2)
        at = np.maximum(many, 1)
        count[:, :, group], level[:, :, group] = many, (mean * seen).sum(axis=2) / at
        apart = (mean - level[:, :, group, None]) * (many / np.maximum(many - 1, 1))[:, :, None]
        times[:, :, group] = (apart**2 / variance[:, :, of] * seen).sum(axis=2) / at
    return _Groups(clear, count, level, np.clip(times, 1.0, _MOST_VARIANCE))


def _carried_over(found: _Groups, days: _Days) -> _Groups:
    """Where one kind of day has moments of its own, so has the other. One that was seen once, or never, has the same
    ones, where that day was nearer to these than to its hours.
    """
    clear, level, variance = found.clear.copy(), found.level.copy(), found.variance.copy()
    for kind, of in enumerate(days.members()[:KINDS]):
        other, count = 1 - kind, found.days[:, :, kind]
        off = np.abs((days.off[:, :, of] * days.seen[:, :, of]).sum(axis=2))
        same = (count == 0) | (count == 1) & (np.abs(level[:, :, kind] - found.level[:, :, other]) < off)
        also = found.own[:, :, other] & ~found.own[:, :, kind] & (same | (count >= _LEAST_DAYS))
        clear[:, :, kind][also] = np.where(same, found.clear[:, :, other], _LEAST_CLEAR)[also]
        for array, before in ((level, found.level), (variance, found.variance)):
            array[:, :, kind][also & same] = before[:, :, other][also & same]
    return _Groups(clear, found.days, level, variance)


def _clearest(found: _Groups) -> _Groups:
    """No more moments of their own than are kept."""
    least = np.partition(_flat(found.clear), -MOST, axis=2)[:, :, -MOST, None, None]
    return replace(found, clear=np.where(found.clear >= least, found.clear, 0.0))


def _widened(found: _Groups) -> _Groups:
    """Where days stray far, they may ten minutes earlier or later, and on the other kind of day."""
    kinds = np.s_[:, :, :KINDS]
    far = np.where(found.own & (found.variance > _STRAYING), found.variance, 0.0)[kinds].max(axis=2)
    wide = np.max([np.roll(far, by, axis=2) for by in range(-_EARLIER, _EARLIER + 1)], axis=0)[:, :, None]
    wide = np.where(found.days[kinds] >= _LEAST_DAYS, wide, 0.0)
    clear, variance = found.clear.copy(), found.variance.copy()
    clear[kinds] = np.where(wide > variance[kinds], np.maximum(clear[kinds], _LEAST_CLEAR), clear[kinds])
    variance[kinds] = np.maximum(variance[kinds], wide)
    return replace(found, clear=clear, variance=variance)


def _unseen(found: _Groups, days: _Days, start: Integers, unseen: Floats) -> tuple[Floats, Floats]:
    """Levels and variances of windows [S, C, T]: at moments of their own the mean of the other days."""
    own, level, count = (days.of(array, found.own) for array in (found.own, found.level, found.days))
    level = np.where(count < _LEAST_DAYS, level, level - (days.mean - level) / np.maximum(count - 1, 1))
    times = np.where(own, days.of(found.variance, found.own), 1.0)
    at = start // MOMENT_S - start[0] // DAY_S * A_DAY
    own, level, times = (array.reshape(*own.shape[:2], -1)[:, :, at] for array in (own, level, times))
    return np.where(own, level, unseen), times


def _flat(groups: Floats) -> Floats:
    """[S, C, G * M]."""
    return groups.reshape(*groups.shape[:2], -1)


def _ratio(above: Floats, below: Floats) -> Floats:
    """0 where there is nothing to divide by."""
    found: Floats = np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)
    return found
