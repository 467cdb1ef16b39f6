"""Divisors of increments under which history itself would have been no evidence: how large rare bursts may be.

While nothing changed, E exp(sum of L increments) <= 1 for every L, or the run length does not stand. A likelihood ratio
has that of coins alone: where a burst comes every day, at whatever minute, its one window outweighs all calm ones. So
the power of each alternative is lowered until the mean over history's stretches of L windows is at most 1; where
history is calm it stays. What a single day of many did is an incident, and no reason to look away.
Shapes: S series, C channels, R of all series, T windows, D days of W windows, 2 directions, K alternatives.
"""

from collections.abc import Callable

import numpy as np

from drift.detectors.series import Flags, Floats

Increments = Callable[[int, int], Floats]  # of a direction and an alternative [S, C, T], undivided; 0 without an update
LENGTHS = (1, 3, 6, 12)  # windows
_MANY_DAYS = 4  # of which the worst one is forgiven
_LEAST_POWER = 1e-3
_ROUNDS = 8
_MOST = 50.0  # exp of it is beyond any count of windows


def tempered(divisor: Floats, said: Increments, a_day: int) -> Floats:
    """Divisors [S, C, 2, K], raised where history asks for it."""
    power = 1 / divisor.reshape(-1, *divisor.shape[2:])
    for direction, alternative in np.ndindex(power.shape[1:]):
        increments = said(direction, alternative)
        running = np.cumsum(_by_day(increments.reshape(len(power), -1), a_day), axis=2)
        for length in LENGTHS[: np.searchsorted(LENGTHS, a_day, side="right")]:
            sums = running[:, :, length - 1 :].copy()
            sums[:, :, 1:] -= running[:, :, :-length]
            one = power[:, direction, alternative]
            if len(loud := np.flatnonzero(_loud(sums, one))):
                one[loud] = _lowered(sums[loud], one[loud])
    return 1 / power.reshape(divisor.shape)


def _by_day(values: Floats, a_day: int) -> Floats:
    """Windows [R, T] as [R, D, W], counted back from the last; zeros before the first."""
    missing = -values.shape[1] % a_day
    return np.pad(values, ((0, 0), (missing, 0))).reshape(len(values), -1, a_day)


def _loud(sums: Floats, power: Floats) -> Flags:
    """Whether channels [R] have to lower their power, whatever the worst of many days did."""
    excess = np.expm1(np.minimum(sums * power[:, None, None], _MOST)).sum(axis=2)
    many = (sums != 0).any(axis=2).sum(axis=1) >= _MANY_DAYS
    found: Flags = excess.sum(axis=1) > np.where(many, excess.max(axis=1), 0.0)
    return found


def _lowered(sums: Floats, power: Floats) -> Floats:
    """The powers [R] at which exp(power * sum) averages 1 over history: by Newton's method, on the logarithm of the
    average, which is convex in the power, and 0 at 0.
    """
    for _ in range(_ROUNDS):
        log = sums * power[:, None, None]
        top = log.max(axis=(1, 2))
        weight = np.exp(log - top[:, None, None])
        total = weight.sum(axis=(1, 2))
        mean = top + np.log(total / sums[0].size)
        slope = (weight * sums).sum(axis=(1, 2)) / total
        power = np.maximum(power - mean / np.where(slope > 0, slope, np.inf), _LEAST_POWER)
    return power
