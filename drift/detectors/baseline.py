"""Baselines of series: seasonal level, noise, margins, horizons. Small, and stored apart from the state.

A pinned reference, or an accepted change, is simply another fit. Shapes: S series, C channels, T windows,
K alternatives, 2 directions (up, down).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers, Numbers
from ragtide.drift.detectors import noise, outlier_hours, season, serialization, time_of_day
from ragtide.drift.detectors.arrays import Batch, cut, size_s
from ragtide.drift.detectors.noise import Noise, pool_windows
from ragtide.drift.detectors.time_of_day import Expected, RecurringTicks
from ragtide.drift.stats import DAY_S, HOUR_S, HOURS, is_weekend

BASELINE_VERSION = 5
FALSE_ALARMS_A_DAY = 0.001  # expected of one series, at most
MIN_UPDATES = 30
_LEVEL_ERRORS = 2.0  # standard errors of the level that are added to the margin
_FIXED_POINT_ROUNDS = 6
_CHUNK = 2_000_000  # array elements that are fitted at a time


class WarmUp(IntEnum):
    """Why a series is not monitored yet."""

    READY = 0
    NO_RECORDS = 1
    LESS_THAN_A_DAY = 2
    TOO_FEW_RECORDS = 3

    @property
    def reason(self) -> str:
        """The reason as text; empty if ready."""
        return _REASONS[self]


_REASONS = {
    WarmUp.READY: "",
    WarmUp.NO_RECORDS: "no records yet",
    WarmUp.LESS_THAN_A_DAY: "less than a day of history",
    WarmUp.TOO_FEW_RECORDS: "too few records to estimate their variance",
}
_NOT_JUDGED = {
    (True, True): "",
    (True, False): "weekends are not judged: history has no whole weekend day yet",
    (False, True): "weekdays are not judged: history has no whole weekday yet",
    (False, False): "no day is judged: history has no whole weekday and no whole weekend day yet",
}


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a fit learned of each series. Its field names are stored.

    `warming` [S]: numbers of `WarmUp`; `active` [S, C]: channels that are monitored; `day_kinds_seen` [S, 2]: whether
    weekdays and weekends have history, without which they are not judged.
    `level` [S, C, slots]; `weekly` [S, C, slots]: hours of the week with their own level, with steps at both ends;
    `recurring`: ticks of the day with their own level. `level_bins` [S, C]: the level's logarithmic bin, if there is
    one. `margin` [S, C, 2]: tolerance, in the unit of the level or as log odds; `tolerance` [S, C]: as a difference,
    for resolution. `min_records_to_clear` [S, C]: records that a mean needs to count for resolution.
    `noise_per_record`, `noise_floor` [S, C] and `third_moment` [S, C, 2]: a, b and third moment, see `noise`; for
    shares a and b are in units of p (1 - p). `records` [S, C]: of a usual update.
    `shifts` [S, C, K]: alternatives. `inflation` [S, C, 2, K]: of the variance at their horizons.
    """

    warming: Numbers
    active: Flags
    day_kinds_seen: Flags
    level: Numbers
    weekly: Flags
    recurring: RecurringTicks
    level_bins: Numbers
    margin: Floats
    tolerance: Floats
    min_records_to_clear: Floats
    noise_per_record: Floats
    noise_floor: Floats
    third_moment: Floats
    records: Floats
    shifts: Floats
    inflation: Floats
    size_s: int
    threshold: float

    @property
    def series(self) -> int:
        """How many."""
        return len(self.warming)

    def expected(self, start: int) -> Expected:
        """Return the expectation of the window that begins at `start`."""
        level = season.expected(self.level, self.weekly, np.array([start]), self.size_s)
        return self.recurring.expected(start, level[:, :, 0])

    def is_judged(self, start: int) -> Flags:
        """Tell whether history has seen this kind of day (weekday, weekend) [S]; else the window counts as empty."""
        return self.day_kinds_seen[:, int(is_weekend(start))]

    def warm_up_reasons(self) -> list[str]:
        """Return why each series is not monitored yet; empty if it is."""
        return [WarmUp(number).reason for number in self.warming.tolist()]

    def days_not_judged(self) -> list[str]:
        """Return which days of each series are not judged; empty if all are."""
        return [_NOT_JUDGED[weekdays, weekends] for weekdays, weekends in self.day_kinds_seen.tolist()]


@dataclass(frozen=True, slots=True)
class SeasonalFit:
    """Levels and weekly hours [S, C, slots], recurring ticks, and records [S, T] without incidents.

    `out_of_sample` [S, C, T]: expectation of each window from other days; `variance` [S, C, T]: in units of the usual.
    """

    level: Floats
    weekly: Flags
    recurring: RecurringTicks
    n: Floats
    out_of_sample: Floats
    variance: Floats


def log_threshold(size_s: int, false_alarms_a_day: float = FALSE_ALARMS_A_DAY) -> float:
    """Return log A, where A is the expected run length to a false alarm, in windows."""
    return math.log(DAY_S / size_s / false_alarms_a_day)


def fit_in_chunks(history: Batch, channels: int, fit: Callable[[Batch], Baseline]) -> Baseline:
    """Fit the baseline of all series in chunks, which bounds the memory of intermediate arrays."""
    windows, series = len(history.start), history.series
    step = max(1, _CHUNK // max(channels * windows, 1))
    chunks = (slice(first, first + step) for first in range(0, series, step))
    return serialization.join([fit(cut(history, slice(None), chunk)) for chunk in chunks])


def fit_season(start: Integers, n: Floats, sums: Floats, max_influence: Floats, seasonal: bool) -> SeasonalFit:
    """Fit the season of windows n [S, T] and sums [S, C, T] without incidents.

    `max_influence` [S, C]: the largest change of a sum by one record.
    """
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
    found = time_of_day.fit_time_of_day(start, included, sums, out_of_sample, max_influence)
    return SeasonalFit(level, weekly, found.recurring, included, found.out_of_sample, found.variance)


def fit_noise(n: Floats, sums: Floats, learned: SeasonalFit, least: Floats, floor: Floats) -> Noise:
    """Fit the noise [S, C] of windows [S, C, T], pooled to updates of `least` [S, C] records; `floor` as in `noise`."""
    shape, rows = sums.shape[:2], (-1, sums.shape[2])
    residual = np.where(n > 0, (sums - n * learned.out_of_sample) / np.sqrt(learned.variance), 0.0).reshape(rows)
    updates = pool_windows(n.reshape(rows), residual, least.ravel())
    found = noise.fit(updates, updates.total * updates.share, floor.ravel())
    arrays = (getattr(found, field.name) for field in fields(Noise))
    return Noise(*(array.reshape(*shape, *array.shape[1:]) for array in arrays))


def margin_of_error(found: Noise) -> Floats:
    """Return two standard errors of the level [S, C], a mean of autocorrelated updates."""
    error: Floats = np.sqrt(found.variance * found.inflation[:, :, -1] / np.maximum(found.updates, 1))
    return _LEVEL_ERRORS * error


def divisors(found: Noise, horizon: Floats) -> Floats:
    """Return the inflation [S, C, 2, K] by which increments are divided, given horizons without inflation.

    An alternative with horizon L raises a false alarm by an excursion of l updates with probability
    A^-(F (L + l)^2 / (4 f(l) L l)), for Gaussian errors, inflation f and divisor F. That is at most 1/A if
    F >= 4 f(l) L l / (L + l)^2 for all l, among them f(L). L grows with F, hence the rounds.
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
    """Return why series of windows n [S, T] with so many `updates` [S] cannot be monitored: `WarmUp` numbers [S]."""
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
    """Tell whether weekdays and weekends [S, 2] have records n [S, T] and at least a day since the first record.

    A kind of day without history has no expectation.
    """
    weekend, since = is_weekend(start), np.cumsum(n, axis=1) > 0
    kinds = [
        (since[:, kind].sum(axis=1) * size_s(start) >= DAY_S) & (n[:, kind] > 0).any(axis=1)
        for kind in (~weekend, weekend)
    ]
    return np.stack(kinds, axis=1) | (not seasonal)
