"""What a fit learned of series: level by season, noise, margins, horizons. Small, and stored apart from the state.

A pinned reference, or what people accepted as the new normal, is simply another fit. Shapes: S series, C channels,
T windows, K alternatives, 2 directions (up, down).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from ragtide.drift.detectors import noise, outlier_hours, season, serialization, time_of_day
from ragtide.drift.detectors.arrays import Batch, Flags, Floats, Integers, Numbers, cut, size_s
from ragtide.drift.detectors.noise import Noise
from ragtide.drift.detectors.subgroups import pool_windows
from ragtide.drift.detectors.time_of_day import Expected, RecurringTicks
from ragtide.drift.stats.calendar import DAY_S, HOUR_S, HOURS, is_weekend

VERSION = 4
FALSE_ALARMS_A_DAY = 0.001  # of one series: at most this many are expected
MIN_UPDATES = 30
_LEVEL_ERRORS = 2.0  # standard errors of the level that are added to the margin
_FIXED_POINT_ROUNDS = 6
_CHUNK = 2_000_000  # elements of an array that is fitted at a time


class WarmUp(IntEnum):
    """Why a series is not watched yet."""

    READY = 0  # it is
    NO_RECORDS = 1
    LESS_THAN_A_DAY = 2
    TOO_FEW_RECORDS = 3

    @property
    def reason(self) -> str:
        """In words; empty where it is watched."""
        return _REASONS[self]


_REASONS = {
    WarmUp.READY: "",
    WarmUp.NO_RECORDS: "no records yet",
    WarmUp.LESS_THAN_A_DAY: "less than a day of history: the hours of the day are not known",
    WarmUp.TOO_FEW_RECORDS: "too few records to know how much they vary",
}
_NOT_JUDGED = {
    (True, True): "",
    (True, False): "weekends are not judged: not a whole day of one was seen yet",
    (False, True): "weekdays are not judged: not a whole one was seen yet",
    (False, False): "no day is judged: neither a whole weekday nor a whole day of a weekend was seen yet",
}


@dataclass(frozen=True, slots=True)
class Baseline:
    """Of each series: why it is not watched yet [S] (numbers of `WarmUp`), which channels are [S, C]; `known` [S, 2]:
    whether weekdays and weekends were seen, without which they are not judged.

    `level` [S, C, slots]; `weekly` [S, C, slots]: hours of the week with a level of their own, which begins and ends at
    once; `recurring`: moments of the day that have one. `bins` [S, C]: the level's logarithmic bin, of a channel that
    counts what lies above one.
    `margin` [S, C, 2]: nobody's business (in the unit of the level, or as log odds); `near` [S, C]: the same as a
    difference, for resolution. `settle` [S, C]: records of which a mean says something. `a`, `b` [S, C], `third`
    [S, C, 2]: noise, see `noise`; for shares a and b in units of p (1 - p). `records` [S, C]: of a usual update.
    `shifts` [S, C, K]: the alternatives. `divisor` [S, C, 2, K]: inflation at their horizons.
    """

    warming: Numbers
    active: Flags
    known: Flags
    level: Numbers
    weekly: Flags
    recurring: RecurringTicks
    bins: Numbers
    margin: Floats
    near: Floats
    settle: Floats
    a: Floats
    b: Floats
    third: Floats
    records: Floats
    shifts: Floats
    divisor: Floats
    size_s: int
    threshold: float

    @property
    def series(self) -> int:
        """How many."""
        return len(self.warming)

    def expected(self, start: int) -> Expected:
        """What the window that begins then is expected to be."""
        level = season.expected(self.level, self.weekly, np.array([start]), self.size_s)
        return self.recurring.expected(start, level[:, :, 0])

    def is_judged(self, start: int) -> Flags:
        """Whether the window that begins then is of a kind of day that history has seen [S]; else it is none."""
        found: Flags = self.known[:, int(is_weekend(start))]
        return found

    def warm_up_reasons(self) -> list[str]:
        """Why each series is not watched yet; empty where it is."""
        return [WarmUp(number).reason for number in self.warming.tolist()]

    def days_not_judged(self) -> list[str]:
        """Which days of each series are not judged, though others are; empty where all are."""
        return [_NOT_JUDGED[weekdays, weekends] for weekdays, weekends in self.known.tolist()]


@dataclass(frozen=True, slots=True)
class SeasonalFit:
    """Levels [S, C, slots] and the week's own hours among them, what recurs, records [S, T] without incidents; what
    each window was expected to be unseen [S, C, T], and how many times the usual variance it has [S, C, T].
    """

    level: Floats
    weekly: Flags
    recurring: RecurringTicks
    n: Floats
    unseen: Floats
    variance: Floats


def log_threshold(size_s: int, false_alarms_a_day: float = FALSE_ALARMS_A_DAY) -> float:
    """log A: the expected run length to a false alarm, in windows."""
    return math.log(DAY_S / size_s / false_alarms_a_day)


def fit_in_chunks(history: Batch, channels: int, fit: Callable[[Batch], Baseline]) -> Baseline:
    """The baseline of all series, fitted for so many at a time that their arrays fit into memory."""
    windows, series = len(history.start), history.series
    step = max(1, _CHUNK // max(channels * windows, 1))
    chunks = (slice(first, first + step) for first in range(0, series, step))
    return serialization.join([fit(cut(history, slice(None), chunk)) for chunk in chunks])


def fit_season(start: Integers, n: Floats, sums: Floats, max_influence: Floats, seasonal: bool) -> SeasonalFit:
    """The season of windows n [S, T] and sums [S, C, T], their incidents left out; `swing` [S, C] as in `incidents`."""
    size = size_s(start)
    seasonal = seasonal and len(start) * size >= season.SEASONAL_DAYS * DAY_S
    cells = season.Cells.of(start, n, sums)
    odd = outlier_hours.find_odd_hours(cells, seasonal, max_influence)
    out = odd.outliers.reshape(len(n), -1)
    included = np.where(out[:, start // HOUR_S - cells.days[0] * HOURS], 0.0, n)
    sums = np.where(included[:, None] > 0, sums, 0.0)
    cells = season.Cells.of(start, included, sums)
    level = season.levels(cells, seasonal, odd.weekly)
    weekly = np.repeat(odd.weekly.reshape(len(n), 1, season.SLOTS), level.shape[1], axis=1)
    out_of_sample = season.out_of_sample(cells, seasonal, odd.weekly, start, size)
    if not seasonal:
        recurring = RecurringTicks.none(*level.shape[:2])
        return SeasonalFit(level, weekly, recurring, included, out_of_sample, np.ones(out_of_sample.shape))
    habits = time_of_day.fit_time_of_day(start, included, sums, out_of_sample, max_influence)
    return SeasonalFit(level, weekly, habits.recurring, included, habits.out_of_sample, habits.variance)


def fit_noise(n: Floats, sums: Floats, learned: SeasonalFit, least: Floats, floor: Floats) -> Noise:
    """Noise [S, C] of windows [S, C, T], joined until `least` [S, C] records are in hand; `floor` as in `noise`."""
    shape, rows = sums.shape[:2], (-1, sums.shape[2])
    residual = np.where(n > 0, (sums - n * learned.unseen) / np.sqrt(learned.variance), 0.0).reshape(rows)
    updates = pool_windows(n.reshape(rows), residual, least.ravel())
    found = noise.fit(updates, updates.total * updates.share, floor.ravel())
    arrays = (getattr(found, field.name) for field in fields(Noise))
    return Noise(*(array.reshape(*shape, *array.shape[1:]) for array in arrays))


def margin_of_error(found: Noise) -> Floats:
    """Two standard errors of the level [S, C]: history's mean is one of updates as autocorrelated as they are."""
    error: Floats = np.sqrt(found.variance * found.inflation[:, :, -1] / np.maximum(found.updates, 1))
    return _LEVEL_ERRORS * error


def divisors(found: Noise, horizon: Floats) -> Floats:
    """Inflation [S, C, 2, K] that alternatives have to reckon with, of the horizons that they need without any.

    An alternative that needs L updates is most likely to be wrong by an excursion of l updates with a probability of
    A^-(F (L + l)^2 / (4 f(l) L l)), F being what its increments are divided by (errors being Gaussian): at most 1/A
    where F is at least 4 f(l) L l / (L + l)^2 for all l, f(L) among them. L grows with F, hence the rounds.
    """
    rows = horizon.reshape(-1, horizon[0, 0].size)
    inflation = found.inflation.reshape(len(rows), -1)
    divisor = np.ones(rows.shape)
    for _ in range(_FIXED_POINT_ROUNDS):
        needed = np.clip(rows * divisor, 1, noise.HORIZONS[-1])
        divisor = noise.at_horizon(inflation, needed)
        for index, length in enumerate(noise.HORIZONS):
            excursion = inflation[:, index, None] * 4 * needed * length / (needed + length) ** 2
            divisor = np.maximum(divisor, excursion)
    return divisor.reshape(horizon.shape)


def warm_up(n: Floats, updates: Integers, size_s: int, seasonal: bool) -> Numbers:
    """The reasons [S] not to watch series of windows n [S, T], which make so many `updates` [S]."""
    seen = n.sum(axis=1) > 0
    first, last = (np.argmax(rows > 0, axis=1) for rows in (n, n[:, ::-1]))
    span_s = (n.shape[1] - last - first) * size_s
    short = seasonal & (span_s < DAY_S)
    return np.select(
        [~seen, short, updates < MIN_UPDATES],
        [WarmUp.NO_RECORDS, WarmUp.LESS_THAN_A_DAY, WarmUp.TOO_FEW_RECORDS],
        WarmUp.READY,
    ).astype(np.int8)


def day_kinds_seen(start: Integers, n: Floats, seasonal: bool) -> Flags:
    """Whether weekdays and weekends [S, 2] have records n [S, T], and a day at least of them is since the first one:
    of a kind of day that was never seen nobody knows how it is.
    """
    weekend, since = is_weekend(start), np.cumsum(n, axis=1) > 0
    kinds = [
        (since[:, kind].sum(axis=1) * size_s(start) >= DAY_S) & (n[:, kind] > 0).any(axis=1)
        for kind in (~weekend, weekend)
    ]
    return np.stack(kinds, axis=1) | (not seasonal)
