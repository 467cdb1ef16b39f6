"""Changes in a bounded score: of its mean beyond 1 % of its range, of its spread beyond a tenth.

Channel 0 is the mean, channel 1 the variance of records about the mean of their window: about the expected mean, a mean
that wanders would count as spread. Alternatives: shifts of 0.1 to 1.6 standard deviations of a record, beyond the
margin. Windows are joined until 30 records (degrees of freedom) are in hand. What lies beyond the margin is clipped at
6 standard deviations, or at what one record can do.
"""

from dataclasses import replace

import numpy as np

from ragtide.drift.detectors import baseline as fits
from ragtide.drift.detectors import e_detector, run_state, serialization, tempering
from ragtide.drift.detectors.arrays import Flags, Floats, Numbers, RunResult, Scores, cut, size_s
from ragtide.drift.detectors.baseline import Baseline, SeasonalFit
from ragtide.drift.detectors.e_detector import Update
from ragtide.drift.detectors.noise import CLIPPED_SIGMAS, Noise
from ragtide.drift.detectors.run_state import State
from ragtide.drift.detectors.season import DAY_S
from ragtide.drift.detectors.subgroups import pool_windows
from ragtide.drift.detectors.tempering import LogLikelihoodRatios
from ragtide.drift.detectors.time_of_day import Expected

CHANNELS = ("mean", "spread")
MIN_RECORDS = 30
MARGIN = 0.01  # of the range
SPREAD_MARGIN = 0.1
SHIFTS = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
_DIRECTIONS = np.array([1.0, -1.0])
_MAX = 1e9  # a window of more records, or with a mean beyond it, is none


def fit(history: Scores, *, span: float = 1.0, seasonal: bool = True) -> Baseline:
    """The baseline of known-good windows, or of any reference (`seasonal=False`: one level); `span`: high - low."""
    parts = [
        _fit(cut(history, slice(None), chunk), span, seasonal)
        for chunk in fits.chunks(len(history.n), 2 * len(history.start))
    ]
    return serialization.join(parts)


def run(baseline: Baseline, state: State, windows: Scores) -> RunResult:
    """Alarms after each of the windows; `state` goes on to their end. Raises as `watching.advance`."""
    run_state.mark_processed(baseline, state, windows.start)
    shape = (baseline.series, len(windows.start))
    result = RunResult(np.zeros(shape, bool), np.zeros(shape))
    for index, at in enumerate(windows.start):
        judged = np.where(baseline.is_judged(int(at)), windows.n[:, index], 0)
        n, total, squares = _zero_invalid(judged, windows.total[:, index], windows.squares[:, index])
        usual = baseline.expected(int(at))
        records, sums = np.stack([n, _freedom(n)], axis=1), np.stack([total, _scatter(n, total, squares)], axis=1)
        _add_to_pool(state, int(at) // baseline.size_s, records, sums, usual)
        result.evidence[:, index] = run_state.step(baseline, state, _take_update(baseline, state))
        result.alarm[:, index] = state.alarms.on
    return result


def _fit(history: Scores, span: float, seasonal: bool) -> Baseline:
    start, size = history.start, size_s(history.start)
    n, total, squares = _zero_invalid(history.n, history.total, history.squares)
    max_influence = np.tile([span, span**2], (len(n), 1))  # [S, C]: as far off as a record can be
    mean = fits.fit_season(start, n, total[:, None], max_influence[:, :1], size, seasonal)
    scatter = np.where(mean.n > 0, _scatter(n, total, squares), 0.0)
    spread = fits.fit_season(start, _freedom(mean.n), scatter[:, None], max_influence[:, 1:], size, seasonal)
    learned = fits.stack_channels(mean, spread)
    variance = learned.level[:, 1].mean(axis=1)
    # One record more than history has, as far off as can be: what n records never did happens once in n.
    rare = 1 / np.maximum(mean.n.sum(axis=1), 1.0)[:, None]
    floor = rare * max_influence**2
    floor[:, 0] += variance
    records, sums = np.stack([mean.n, spread.n], axis=1), np.stack([total, scatter], axis=1)
    found = fits.fit_noise(records, sums, learned, np.full(max_influence.shape, MIN_RECORDS), floor)
    third = np.maximum(found.third_moment[:, :, None] * [1.0, -1.0], 0.0) + (rare * max_influence**3)[:, :, None]
    warming = fits.warm_up(n, found.updates[:, 0], size, seasonal)
    margin = np.stack([np.full(len(n), MARGIN * span), np.maximum(SPREAD_MARGIN * variance, (MARGIN * span) ** 2)], 1)
    known = fits.day_kinds_seen(start, n, size, seasonal)
    baseline = _baseline(found, warming, known, learned, margin, third, floor, size)
    every = np.stack([n, _freedom(n)], axis=1)
    scattered = np.stack([total, _scatter(n, total, squares)], axis=1)
    log_lr = _log_lr(baseline, every, np.where(every > 0, scattered - every * learned.unseen, 0.0), learned.variance)
    divisor = tempering.temper(baseline.divisor, log_lr, every > records, max(DAY_S // size, 1))
    return replace(baseline, divisor=divisor)


def _baseline(
    found: Noise,
    warming: Numbers,
    known: Flags,
    learned: SeasonalFit,
    margin: Floats,
    third: Floats,
    floor: Floats,
    size: int,
) -> Baseline:
    """Of the channels' noise. The variance of a squared deviation is taken for a Gaussian's: twice its mean squared."""
    near = margin + fits.margin_of_error(found)
    shifts = np.sqrt(np.stack([floor[:, 0], 2 * floor[:, 0] ** 2], axis=1))[:, :, None] * SHIFTS
    threshold = fits.log_threshold(size)
    horizon = 2 * threshold * found.variance[:, :, None] / shifts**2
    return Baseline(
        warming=warming,
        active=(warming == fits.WarmUp.READY)[:, None] & (found.updates >= fits.MIN_UPDATES),
        known=known,
        level=learned.level.astype(np.float32),
        weekly=learned.weekly,
        recurring=learned.recurring,
        bins=np.zeros(near.shape, np.int32),
        margin=np.repeat(near[:, :, None], 2, axis=2),
        near=near,
        settle=np.full(near.shape, float(MIN_RECORDS)),
        a=found.noise_per_record,
        b=found.noise_floor,
        third=third,
        records=found.records,
        shifts=shifts,
        divisor=fits.divisors(found, np.repeat(horizon[:, :, None], 2, axis=2)),
        size_s=size,
        threshold=threshold,
    )


def _log_lr(baseline: Baseline, n: Floats, residual: Floats, variance_ratio: Floats) -> LogLikelihoodRatios:
    """What history's windows [S, C, T] would have said, which stray from what other days expected of them."""
    windows, (n, residual, variance_ratio) = (
        n.shape[2],
        (array.reshape(-1, n.shape[2]) for array in (n, residual, variance_ratio)),
    )
    a, b = (array.reshape(-1, 1) for array in (baseline.a, baseline.b))
    least = np.full(len(n), float(MIN_RECORDS))
    updates = pool_windows(n, residual, least)
    mean, skewed = updates.total * updates.share, updates.share**2
    mean, skewed, variance, times = (
        updates.at_windows(array, windows)
        for array in (mean, skewed, a * updates.share + b * updates.repeat_share, updates.present.astype(np.float64))
    )
    if len(far := np.flatnonzero((variance_ratio != 1).any(axis=1))):
        straying = pool_windows(n[far], n[far] * variance_ratio[far], least[far])
        times[far] = straying.at_windows(straying.total * straying.share, windows)
    third, margin, shifts = (array.reshape(len(n), -1) for array in (baseline.third, baseline.margin, baseline.shifts))

    def of(some: slice, direction: int, alternative: int) -> Floats:
        present = times[some] > 0
        found = _increments(
            _DIRECTIONS[direction] * mean[some],
            np.where(present, variance[some], 1.0),
            third[some, direction, None] * skewed[some],
            margin[some, direction, None],
            shifts[some, alternative, None, None],
        )
        return np.where(present, found[..., 0] / np.where(present, times[some], 1.0), 0.0)

    return of


def _freedom(n: Floats) -> Floats:
    return np.maximum(n - 1, 0.0)


def _scatter(n: Floats, total: Floats, squares: Floats) -> Floats:
    """The sum of (record - mean of the window)^2."""
    return np.maximum(squares - total**2 / np.where(n > 0, n, 1.0), 0.0)


def _zero_invalid(n: Numbers, total: Numbers, squares: Numbers) -> tuple[Floats, Floats, Floats]:
    """As floats; windows that hold no numbers, or impossible ones, as empty ones."""
    records, sums, sums_squares = (np.array(array, np.float64) for array in (n, total, squares))
    good: Flags = (records >= 1) & (records <= _MAX) & np.isfinite(sums) & (sums_squares >= 0)
    bounded = _MAX * np.clip(records, 0.0, _MAX)
    good &= (np.abs(sums) <= bounded) & (sums_squares <= _MAX * bounded)
    for array in (records, sums, sums_squares):
        array[~good] = 0.0
    return records, sums, sums_squares


def _add_to_pool(state: State, window: int, records: Floats, sums: Floats, usual: Expected) -> None:
    pool = state.pool
    expected = records * usual.level
    pool.first[pool.records == 0] = window
    pool.records[:] += records
    pool.squares[:] += records**2
    pool.residual[:] += sums - expected
    pool.expected[:] += expected
    pool.variance[:] += records * usual.variance


def _take_update(baseline: Baseline, state: State) -> Update:
    """The update of channels with enough records, whose pool begins again."""
    pool = state.pool
    present = pool.records >= MIN_RECORDS
    records = np.where(present, pool.records, 1.0)
    variance = (baseline.a / records + baseline.b * np.where(present, pool.squares, 1.0) / records**2)[:, :, None]
    residual = np.where(present, pool.residual / records, 0.0)[:, :, None] * _DIRECTIONS
    third = baseline.third / records[:, :, None] ** 2
    increments = _increments(residual, variance, third, baseline.margin, baseline.shifts[:, :, None])
    increments /= baseline.divisor * np.where(present, pool.variance / records, 1.0)[:, :, None, None]
    update = Update(present, pool.first.copy(), records, pool.residual.copy(), pool.expected.copy(), increments)
    for array in (pool.records, pool.squares, pool.residual, pool.expected, pool.variance):
        array[present] = 0.0
    return update


def _increments(residual: Floats, variance: Floats, third: Floats, margin: Floats, shift: Floats) -> Floats:
    """Log likelihood ratios of residuals, with a last axis for alternatives; undivided."""
    most = np.maximum(CLIPPED_SIGMAS * np.sqrt(variance), third / variance)
    beyond = np.clip(residual - margin, -most, most)
    return e_detector.poisson_increments(beyond[..., None], variance[..., None], third[..., None], shift)
