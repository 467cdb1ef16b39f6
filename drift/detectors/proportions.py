"""Detect changes in proportions of records: exact Bernoulli likelihoods for odds times 1.25 to 5, either way.

Hits [S, C, T] among records n [S, T]. Every window with a record counts. If proportions vary more than binomially
(bursts, wander), increments are divided by the excess variance. A power below 1 of a likelihood ratio has an
expectation of at most 1 too, so the run length holds.

Rates have one channel. Heavy-tailed metrics (latency, cost) have two, records above the history's median and 95th
percentile, since one request can dominate the mean. `Baseline.level_bins` holds the levels' bins,
`arrays.level_values` gives them in the metric's unit."""

from dataclasses import replace

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers, Numbers
from ragtide.drift.detectors import baseline as fits
from ragtide.drift.detectors import e_detector, run_state, tempering
from ragtide.drift.detectors.arrays import HeavyTailed, Rates, RunResult, size_s
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.e_detector import SIGNS, Update
from ragtide.drift.detectors.run_state import State
from ragtide.drift.detectors.tempering import LogLikelihoodRatios
from ragtide.drift.stats import DAY_S

MARGIN = 0.1  # of the odds
HEAVY_TAILED_CHANNELS = ("median", "p95")
RATIOS = np.array([1.25, 1.5, 2.0, 3.0, 5.0])
_EITHER_WAY = np.stack([RATIOS, 1 / RATIOS])
_MIN_INFORMATION = 1e-12
_MAX_LOG_MARGIN = 20.0  # log odds
_MIN_RECORDS = 10
_CLEAR_RECORDS = 30  # that a mean needs to count for the end of an alarm
_CLEAR_HITS = 3  # expected among them
_MIN_UPDATES = 100  # of a history, also if hits are rare
_MAX_SHARE = 1 - 2.0**-24  # below 1 in single precision
_MAX_RECORDS = 1e12  # records of a window


def fit_channels(
    start: Integers, n: Floats, hits: Floats, seasonal: bool, margin: float, min_shares: Floats
) -> Baseline:
    """Fit the baseline of valid windows; `min_shares` [C] are lower bounds of hourly levels."""
    size = size_s(start)
    learned = fits.fit_season(start, n, hits, np.ones(hits.shape[:2]), seasonal)
    records = learned.n.sum(axis=1)[:, None]
    least_share = np.maximum(min_shares, 0.5 / np.maximum(records, 1.0))
    level = _clip_levels(learned.level, least_share)
    usual = level.mean(axis=2, dtype=np.float64)
    coin = usual * (1 - usual)
    least = np.clip(1 / coin, _MIN_RECORDS, np.maximum(records / _MIN_UPDATES, _MIN_RECORDS))
    of_channel = np.broadcast_to(learned.n[:, None], hits.shape)
    found = fits.fit_noise(of_channel, hits, learned, least, coin)
    log_margin = np.log1p(margin) + np.minimum(fits.margin_of_error(found) / coin, _MAX_LOG_MARGIN)
    log_margin = np.repeat(log_margin[:, :, None], 2, axis=2)
    # Where a level was raised to the minimum, a fall cannot be seen.
    log_margin[:, :, 1][learned.level.min(axis=2) <= least_share] = np.inf
    a, b = found.noise_per_record / coin, found.noise_floor / coin
    threshold, a_day = fits.log_threshold(size), max(DAY_S // size, 1)
    spread = ((a + b * found.records) / found.records)[:, :, None, None]
    divisor = fits.divisors(found, threshold * spread / _information(usual, log_margin))
    every = np.broadcast_to(n[:, None], hits.shape)
    varying = (a[:, :, None] + b[:, :, None] * np.maximum(every, found.records[:, :, None])) * learned.variance
    log_lr = _log_lr(every, hits, _clip_levels(learned.out_of_sample, least_share), log_margin, varying)
    warming = fits.warm_up(n, found.updates.min(axis=1), size, seasonal)
    return Baseline(
        warming=warming,
        active=np.repeat((warming == fits.WarmUp.READY)[:, None], hits.shape[1], axis=1),
        day_kinds_seen=fits.day_kinds_seen(start, n, seasonal),
        level=level,
        weekly=learned.weekly,
        recurring=replace(learned.recurring, level=_clip_levels(learned.recurring.level, least_share)),
        level_bins=np.zeros(usual.shape, np.int32),
        margin=log_margin,
        tolerance=coin * log_margin[:, :, 0],
        min_records_to_clear=np.maximum(_CLEAR_RECORDS, _CLEAR_HITS / coin),
        noise_per_record=a,
        noise_floor=b,
        third_moment=np.zeros(log_margin.shape),
        records=found.records,
        shifts=np.tile(np.log(RATIOS), (*usual.shape, 1)),
        inflation=tempering.temper(divisor, log_lr, every > of_channel, a_day),
        size_s=size,
        threshold=threshold,
    )


def run_channels(baseline: Baseline, state: State, start: Integers, n: Numbers, hits: Numbers) -> RunResult:
    """Run over windows n [S, T], hits [S, C, T]; `state` advances to their end."""

    def update_at(index: int, at: int) -> Update:
        judged = np.where(baseline.is_judged(at), n[:, index], 0)
        return _update(baseline, at, *zero_invalid(judged, hits[:, :, index]))

    return run_state.run(baseline, state, start, update_at)


def zero_invalid(n: Numbers, hits: Numbers) -> tuple[Floats, Floats]:
    """Convert n [S, ...] and hits [S, C, ...] to floats; windows with NaN or impossible values become empty."""
    records, of_channel = np.array(n, np.float64), np.array(hits, np.float64)
    good: Flags = np.isfinite(records) & (records >= 1) & (records <= _MAX_RECORDS)
    good &= ((of_channel >= 0) & (of_channel <= records[:, None])).all(axis=1)
    records[~good] = 0.0
    of_channel[np.broadcast_to(~good[:, None], of_channel.shape)] = 0.0
    return records, of_channel


def _update(baseline: Baseline, at: int, n: Floats, hits: Floats) -> Update:
    usual = baseline.expected(at)
    level = usual.level
    records = np.broadcast_to(n[:, None], hits.shape)
    odds = (level / (1 - level))[:, :, None] * np.exp(baseline.margin * SIGNS)
    spread = baseline.noise_per_record + baseline.noise_floor * np.maximum(records, baseline.records)
    increments = e_detector.bernoulli_increments(
        records[:, :, None, None], hits[:, :, None, None], odds[..., None], _EITHER_WAY
    )
    increments = increments / ((spread * usual.variance)[:, :, None, None] * baseline.inflation)
    expected = records * level
    first = np.full(hits.shape, at // baseline.size_s, np.int32)
    return Update(records > 0, first, records, hits - expected, expected, increments)


def _log_lr(n: Floats, hits: Floats, level: Floats, log_margin: Floats, varying: Floats) -> LogLikelihoodRatios:
    """Return log likelihood ratios of history's windows [S, C, T], given these expected levels."""
    rows = (-1, n.shape[2])
    n, hits, odds, varying = (array.reshape(rows) for array in (n, hits, level / (1 - level), varying))
    times = np.exp(log_margin * SIGNS).reshape(len(n), -1)

    def of(some: slice, direction: int, alternative: int) -> Floats:
        at_margin = odds[some] * times[some, direction, None]
        ratio = _EITHER_WAY[direction, alternative]
        return e_detector.bernoulli_increments(n[some], hits[some], at_margin, ratio) / varying[some]

    return of


def _clip_levels(level: Numbers, least: Floats) -> Numbers:
    """Keep levels [S, C, ...] away from 0 and 1, where odds are undefined."""
    found: Numbers = np.clip(level, least[:, :, None], np.minimum(1 - least, _MAX_SHARE)[:, :, None])
    return found.astype(np.float32)


def _information(share: Floats, log_margin: Floats) -> Floats:
    """Return the Kullback-Leibler divergence [S, C, 2, K] per record between each alternative and the margin."""
    odds = (share / (1 - share))[:, :, None] * np.exp(log_margin * SIGNS)
    moved = odds[..., None] * _EITHER_WAY
    less = np.log1p(moved) - np.log1p(odds)[..., None]
    worth: Floats = np.maximum(moved / (1 + moved) * np.log(_EITHER_WAY) - less, _MIN_INFORMATION)
    return worth


def fit_rates(history: Rates, *, seasonal: bool = True) -> Baseline:
    """Fit the baseline of known-good windows, or of any reference (`seasonal=False`: one level)."""
    return fits.fit_in_chunks(history, 1, lambda some: _fit(some, some.hits[:, None], seasonal))


def run_rates(baseline: Baseline, state: State, windows: Rates) -> RunResult:
    """Run over windows; `state` advances to their end. Raises as `run_state.run`."""
    return run_channels(baseline, state, windows.start, windows.n, windows.hits[:, None])


def fit_heavy_tailed(history: HeavyTailed, levels: Integers | None = None, *, seasonal: bool = True) -> Baseline:
    """Fit the baseline of known-good windows, or of any reference; `levels` [S, 2]: the bins of the levels."""
    channels = len(HEAVY_TAILED_CHANNELS)
    found = fits.fit_in_chunks(history, channels, lambda some: _fit(some, some.above.transpose(0, 2, 1), seasonal))
    return found if levels is None else replace(found, level_bins=levels.astype(np.int32))


def run_heavy_tailed(baseline: Baseline, state: State, windows: HeavyTailed) -> RunResult:
    """Run over windows; `state` advances to their end. Raises as `run_state.run`."""
    return run_channels(baseline, state, windows.start, windows.n, windows.above.transpose(0, 2, 1))


def _fit(history: Rates | HeavyTailed, hits: Numbers, seasonal: bool) -> Baseline:
    return fit_channels(
        history.start, *zero_invalid(history.n, hits), seasonal, MARGIN, min_shares=np.zeros(hits.shape[1])
    )
