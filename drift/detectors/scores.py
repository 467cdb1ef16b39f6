"""Detect changes in a bounded score: of its mean beyond 1 % of its range, of its variance beyond a tenth.

Scores are scaled to 0 to 1. Channel 0 is the mean, channel 1 the variance of records about the mean of their window;
about the expected mean, a wandering mean would count as variance. Alternatives are shifts of 0.1 to 1.6 standard
deviations of a record, beyond the margin. Windows are pooled to 30 records (degrees of freedom). Residuals beyond the
margin are clipped at 6 standard deviations, or at the influence of one record.
"""

from dataclasses import replace

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Numbers
from ragtide.drift.detectors import baseline as fits
from ragtide.drift.detectors import e_detector, run_state, serialization, tempering
from ragtide.drift.detectors.arrays import RunResult, Scores, ratio, size_s
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.e_detector import SIGNS, Update
from ragtide.drift.detectors.noise import CLIPPED_SIGMAS, pool_windows
from ragtide.drift.detectors.run_state import State
from ragtide.drift.detectors.tempering import LogLikelihoodRatios
from ragtide.drift.detectors.time_of_day import Expected
from ragtide.drift.stats import DAY_S

SCORE_CHANNELS = ("mean", "spread")
MIN_RECORDS = 30
MARGIN = 0.01  # of the range
SPREAD_MARGIN = 0.1
SHIFTS = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
_MAX = 1e9  # a window with more records, or a larger mean, counts as empty


def fit(history: Scores, *, seasonal: bool = True) -> Baseline:
    """Fit the baseline of known-good windows, or of any reference (`seasonal=False`: one level)."""
    return fits.fit_in_chunks(history, len(SCORE_CHANNELS), lambda some: _fit(some, seasonal))


def run(baseline: Baseline, state: State, windows: Scores) -> RunResult:
    """Run over windows; `state` advances to their end. Raises as `run_state.run`."""

    def update_at(index: int, at: int) -> Update:
        judged = np.where(baseline.is_judged(at), windows.n[:, index], 0)
        channels = to_channels(*_zero_invalid(judged, windows.total[:, index], windows.squares[:, index]))
        _add_to_pool(state, at // baseline.size_s, *channels, baseline.expected(at))
        return _take_update(baseline, state)

    return run_state.run(baseline, state, windows.start, update_at)


def _fit(history: Scores, seasonal: bool) -> Baseline:
    start, size = history.start, size_s(history.start)
    n, total, squares = _zero_invalid(history.n, history.total, history.squares)
    every, sums = to_channels(n, total, squares)
    max_influence = np.ones(every.shape[:2])  # of one record: scores lie within 0 to 1
    mean = fits.fit_season(start, n, sums[:, :1], max_influence[:, :1], seasonal)
    included = np.stack([sums[:, 0], np.where(mean.n > 0, sums[:, 1], 0.0)], axis=1)
    spread = fits.fit_season(start, _freedom(mean.n), included[:, 1:], max_influence[:, 1:], seasonal)
    learned = replace(serialization.join([mean, spread], axis=1), n=mean.n)
    variance = learned.level[:, 1].mean(axis=1)
    # One additional record with the largest deviation: what n records never showed may happen once in n.
    rare = 1 / np.maximum(mean.n.sum(axis=1), 1.0)[:, None]
    floor = rare * max_influence
    floor[:, 0] += variance
    records = np.stack([mean.n, spread.n], axis=1)
    found = fits.fit_noise(records, included, learned, np.full(max_influence.shape, MIN_RECORDS), floor)
    margin = np.stack([np.full(len(n), MARGIN), np.maximum(SPREAD_MARGIN * variance, MARGIN**2)], axis=1)
    near = margin + fits.margin_of_error(found)
    # The variance of a squared deviation is approximated by a Gaussian's: twice its squared mean.
    shifts = np.sqrt(np.stack([floor[:, 0], 2 * floor[:, 0] ** 2], axis=1))[:, :, None] * SHIFTS
    threshold = fits.log_threshold(size)
    horizon = 2 * threshold * found.variance[:, :, None] / shifts**2
    warming = fits.warm_up(n, found.updates[:, 0], size, seasonal)
    baseline = Baseline(
        warming=warming,
        active=(warming == fits.WarmUp.READY)[:, None] & (found.updates >= fits.MIN_UPDATES),
        day_kinds_seen=fits.day_kinds_seen(start, n, seasonal),
        level=learned.level.astype(np.float32),
        weekly=learned.weekly,
        recurring=learned.recurring,
        level_bins=np.zeros(near.shape, np.int32),
        margin=np.repeat(near[:, :, None], 2, axis=2),
        tolerance=near,
        min_records_to_clear=np.full(near.shape, float(MIN_RECORDS)),
        noise_per_record=found.noise_per_record,
        noise_floor=found.noise_floor,
        third_moment=np.maximum(found.third_moment[:, :, None] * SIGNS, 0.0) + rare[:, :, None],
        records=found.records,
        shifts=shifts,
        inflation=fits.divisors(found, np.repeat(horizon[:, :, None], 2, axis=2)),
        size_s=size,
        threshold=threshold,
    )
    log_lr = _log_lr(baseline, every, np.where(every > 0, sums - every * learned.out_of_sample, 0.0), learned.variance)
    return replace(
        baseline, inflation=tempering.temper(baseline.inflation, log_lr, every > records, max(DAY_S // size, 1))
    )


def _log_lr(baseline: Baseline, n: Floats, residual: Floats, variance_ratio: Floats) -> LogLikelihoodRatios:
    """Return log likelihood ratios of history's windows [S, C, T], from residuals of out-of-sample levels."""
    windows = n.shape[2]
    n, residual, variance_ratio = (array.reshape(-1, windows) for array in (n, residual, variance_ratio))
    a, b = (array.reshape(-1, 1) for array in (baseline.noise_per_record, baseline.noise_floor))
    least = np.full(len(n), float(MIN_RECORDS))
    updates = pool_windows(n, residual, least)
    of_updates = (
        updates.total * updates.share,
        updates.share**2,
        a * updates.share + b * updates.repeat_share,
        updates.present.astype(np.float64),
    )
    mean, skewed, variance, times = (updates.at_windows(array, windows) for array in of_updates)
    if len(far := np.flatnonzero((variance_ratio != 1).any(axis=1))):
        straying = pool_windows(n[far], n[far] * variance_ratio[far], least[far])
        times[far] = straying.at_windows(straying.total * straying.share, windows)
    third, margin, shifts = (
        array.reshape(len(n), -1) for array in (baseline.third_moment, baseline.margin, baseline.shifts)
    )

    def of(some: slice, direction: int, alternative: int) -> Floats:
        present = times[some] > 0
        found = _increments(
            SIGNS[direction] * mean[some],
            np.where(present, variance[some], 1.0),
            third[some, direction, None] * skewed[some],
            margin[some, direction, None],
            shifts[some, alternative, None, None],
        )
        return np.where(present, ratio(found[..., 0], times[some]), 0.0)

    return of


def _freedom(n: Floats) -> Floats:
    return np.maximum(n - 1, 0.0)


def to_channels(n: Floats, total: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Return records and sums of both channels [S, 2, ...]."""
    scatter = np.maximum(squares - ratio(total**2, n), 0.0)
    return np.stack([n, _freedom(n)], axis=1), np.stack([total, scatter], axis=1)


def _zero_invalid(n: Numbers, total: Numbers, squares: Numbers) -> tuple[Floats, Floats, Floats]:
    """Convert to floats; windows with NaN or impossible values become empty."""
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
    """Take the update of channels with enough pooled records, and empty their pool."""
    pool = state.pool
    present = pool.records >= MIN_RECORDS
    records = np.where(present, pool.records, 1.0)
    variance = (
        baseline.noise_per_record / records + baseline.noise_floor * np.where(present, pool.squares, 1.0) / records**2
    )[:, :, None]
    residual = np.where(present, pool.residual / records, 0.0)[:, :, None] * SIGNS
    third = baseline.third_moment / records[:, :, None] ** 2
    increments = _increments(residual, variance, third, baseline.margin, baseline.shifts[:, :, None])
    increments /= baseline.inflation * np.where(present, pool.variance / records, 1.0)[:, :, None, None]
    update = Update(present, pool.first.copy(), records, pool.residual.copy(), pool.expected.copy(), increments)
    for array in (pool.records, pool.squares, pool.residual, pool.expected, pool.variance):
        array[present] = 0.0
    return update


def _increments(residual: Floats, variance: Floats, third: Floats, margin: Floats, shift: Floats) -> Floats:
    """Return log likelihood ratios of residuals, alternatives on the last axis, before division by the inflation."""
    most = np.maximum(CLIPPED_SIGMAS * np.sqrt(variance), third / variance)
    beyond = np.clip(residual - margin, -most, most)
    return e_detector.poisson_increments(beyond[..., None], variance[..., None], third[..., None], shift)
