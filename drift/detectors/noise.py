"""Pool windows to updates (rational subgroups), and fit the noise of updates: variance, skewness, autocorrelation.

Consecutive windows of a channel are pooled until they have enough records; the running detector and the fit pool alike.
Residuals are of means (or shares), out of sample. An update of windows with n1, n2, ... records has N = sum n, Q = sum
n^2 and variance a/N + b Q/N^2. Shapes: R channels of all series, T windows, U updates of the channel with the most;
other channels are padded with zeros.
"""

from dataclasses import dataclass

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers
from ragtide.drift.detectors.arrays import masked_median, ratio

CLIPPED_SIGMAS = 6.0
HORIZONS = np.array([1, 3, 6, 12, 36, 72, 144, 288])
_WINSORISED_SIGMAS = 4.0
_ROUNDS = 5
_MEDIAN_OF_CHI2 = 0.4549  # of one degree of freedom
_SINGULAR = 1e-6  # relative determinant, below which a and b cannot be separated
_MIN_BLOCKS = 4  # of a horizon in the history; with fewer the inflation of the last horizon that has them holds


@dataclass(frozen=True, slots=True)
class Updates:
    """Updates [R, U]: `present`, records N, their sum, `share` 1/N, `repeat_share` Q/N^2, last window; 0 if absent.

    Q is the sum of squared records of the windows: Q/N^2 is 1 for an update of one window, less for several.
    """

    present: Flags
    records: Floats
    total: Floats
    share: Floats
    repeat_share: Floats
    window: Integers

    @property
    def count(self) -> Integers:
        """Number of updates of each channel [R]."""
        found: Integers = self.present.sum(axis=1)
        return found

    def at_windows(self, values: Floats, windows: int) -> Floats:
        """Place values of updates [R, U] at the windows [R, T] that complete them; 0 elsewhere."""
        found = np.zeros((len(values), windows))
        row, update = np.nonzero(self.present)
        found[row, self.window[row, update]] = values[row, update]
        return found


def pool_windows(n: Floats, total: Floats, least: Floats) -> Updates:
    """Pool windows [R, T] until each update has `least` [R] records; the remainder is dropped."""
    complete = _completes(n, least)
    place = np.cumsum(complete, axis=1) - 1
    channel, window = np.nonzero(complete)
    update = place[channel, window]
    shape = (len(n), max(int(complete.sum(axis=1).max(initial=0)), 1))

    def held(values: Floats) -> Floats:
        up_to = np.cumsum(values, axis=1)[channel, window]
        found = np.zeros(shape)
        found[channel, update] = up_to - np.where(update > 0, np.roll(up_to, 1), 0.0)
        return found

    records = held(n)
    present = records > 0
    share = ratio(present, records)
    at = np.zeros(shape, np.int64)
    at[channel, update] = window
    return Updates(present, records, held(total), share, held(n**2) * share**2, at)


def _completes(n: Floats, least: Floats) -> Flags:
    """Tell which windows [R, T] complete an update."""
    complete = np.zeros(n.shape[::-1], dtype=bool)
    held = np.zeros(len(n))
    for window, records in enumerate(np.ascontiguousarray(n.T)):
        held += records
        complete[window] = held >= least
        held[complete[window]] = 0.0
    return complete.T


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise [R]: variance of a record (a), variance that does not average out (b), third central moment of a record.

    `inflation` [R, horizons]: of the variance of sums of updates. `updates`: their number; `records` and `variance`:
    of a usual update.
    """

    noise_per_record: Floats
    noise_floor: Floats
    third_moment: Floats
    inflation: Floats
    updates: Integers
    records: Floats
    variance: Floats


def fit(updates: Updates, residual: Floats, floor: Floats) -> Noise:
    """Fit the noise of residuals [R, U]; `floor` [R] > 0 is a lower bound of a, the variance of a record."""
    a, b = _variance(updates, residual, floor)
    variance = _update_variance(updates, a, b)
    z = np.where(updates.present, residual / np.sqrt(variance), 0.0)
    z = np.clip(z, -CLIPPED_SIGMAS, CLIPPED_SIGMAS)
    count = np.maximum(updates.count, 1)
    return Noise(
        a,
        b,
        _third_moment(updates, z, variance),
        inflation(z, updates.count),
        updates=updates.count,
        records=np.maximum(updates.records.sum(axis=1) / count, 1.0),
        variance=np.where(updates.present, variance, 0.0).sum(axis=1) / count,
    )


def inflation(z: Floats, count: Integers) -> Floats:
    """Return Var(sum of L)/L [R, horizons] of standardised residuals [R, U]: at least 1, not decreasing in L."""
    running = np.concatenate([np.zeros((len(z), 1)), np.cumsum(z, axis=1)], axis=1)
    found = np.ones((len(z), len(HORIZONS)))
    for index, horizon in enumerate(HORIZONS):
        if horizon >= running.shape[1]:
            break
        inside = np.arange(horizon, running.shape[1]) <= count[:, None]
        squared = (running[:, horizon:] - running[:, :-horizon]) ** 2 * inside
        mean = squared.sum(axis=1) / np.maximum(inside.sum(axis=1), 1) / horizon
        found[:, index] = np.where(count >= _MIN_BLOCKS * horizon, mean, 1.0)
    return np.maximum.accumulate(np.maximum(found, 1.0), axis=1)


def at_horizon(inflation: Floats, horizon: Floats) -> Floats:
    """Interpolate inflation at horizons [R, K] in updates, linearly in the log of the horizon."""
    place = np.interp(np.log(horizon), np.log(HORIZONS), np.arange(len(HORIZONS)))
    before = np.minimum(place.astype(np.int64), len(HORIZONS) - 2)
    low, high = (np.take_along_axis(inflation, before + step, axis=1) for step in (0, 1))
    return low + (high - low) * (place - before)


def _update_variance(updates: Updates, a: Floats, b: Floats) -> Floats:
    """Return the variance of each update's mean; 1 where there is no update."""
    return np.where(updates.present, a[:, None] * updates.share + b[:, None] * updates.repeat_share, 1.0)


def _variance(updates: Updates, residual: Floats, floor: Floats) -> tuple[Floats, Floats]:
    """Fit a and b by non-negative least squares of winsorised squared residuals, reweighted each round.

    `a` is at least the average of the squares without winsorising: rare large errors are errors too.
    """
    x, q = updates.share, updates.repeat_share
    squared = residual**2 * updates.present
    scale = masked_median(squared * updates.records, updates.present) / _MEDIAN_OF_CHI2
    a, b = np.maximum(scale, floor), np.zeros(floor.shape)
    for _ in range(_ROUNDS):
        now = _update_variance(updates, a, b)
        beyond = np.minimum(squared, _WINSORISED_SIGMAS**2 * now) - floor[:, None] * x
        more, b = _non_negative(updates.present / now**2, x, q, beyond)
        a = floor + more
    whole = (updates.records * (squared - b[:, None] * q)).sum(axis=1) / np.maximum(updates.count, 1)
    return np.maximum(a, whole), b


def _non_negative(weight: Floats, x: Floats, q: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return a, b >= 0 that minimise the sum of weight (y - a x - b q)^2.

    If all updates have equally many records, a and b cannot be separated: all is taken for b, the cautious choice.
    """
    xx, xq, qq = (weight * x * x).sum(axis=1), (weight * x * q).sum(axis=1), (weight * q * q).sum(axis=1)
    xy, qy = (weight * x * y).sum(axis=1), (weight * q * y).sum(axis=1)
    determinant = xx * qq - xq**2
    separable = determinant > _SINGULAR * xx * qq
    safe = np.where(separable, determinant, 1.0)
    a, b = (xy * qq - qy * xq) / safe, (qy * xx - xy * xq) / safe
    both = separable & (a >= 0) & (b >= 0)
    only_a = separable & (b < 0)
    return (
        np.where(both, a, np.where(only_a, np.maximum(ratio(xy, xx), 0.0), 0.0)),
        np.where(both, b, np.where(only_a, 0.0, np.maximum(ratio(qy, qq), 0.0))),
    )


def _third_moment(updates: Updates, z: Floats, variance: Floats) -> Floats:
    """Fit the third moment by weighted least squares of cubed residuals on 1/N^2, as that of a mean scales."""
    scale = updates.share**2 / (variance * np.sqrt(variance))
    return ratio((z * z * z * scale).sum(axis=1), (scale**2).sum(axis=1))
