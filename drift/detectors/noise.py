"""Noise of updates: variance a/N + b, skewness, and inflation by autocorrelation.

Residuals are of means (or shares), out of sample. An update of windows with n1, n2, ... records has N = sum n,
Q = sum n^2 and variance a/N + b Q/N^2. Shapes: R channels, U updates as in `subgroups`.
"""

from dataclasses import dataclass

import numpy as np

from ragtide.drift.detectors.arrays import Floats, Integers, masked_median, ratio
from ragtide.drift.detectors.subgroups import Updates

CLIPPED_SIGMAS = 6.0
HORIZONS = np.array([1, 3, 6, 12, 36, 72, 144, 288])
_WINSORISED_SIGMAS = 4.0
_ROUNDS = 5
_MEDIAN_OF_CHI2 = 0.4549  # of one degree of freedom
_SINGULAR = 1e-6  # relative determinant, below which a and b cannot be separated
_MIN_BLOCKS = 4  # of a horizon in the history; with fewer the inflation of the last horizon that has them holds


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
