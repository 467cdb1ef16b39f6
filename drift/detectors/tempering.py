"""Temper increments: raise their divisors until a replay of history gives no evidence of change.

Without a change, evidence may reach x about once in exp(x) windows, or the run length does not hold. A likelihood ratio
obeys this if the noise model is right. Bursts and bad hours at irregular times drive it higher. So the power of each
alternative is lowered until the drawups of history's days are within bounds: the k-th highest of N windows at most
0.6 log(N / k), with reserve since history is one sample. A calm history changes nothing.
Incidents must not desensitise the detector. Excluded hours count only if the day went both ways, as in a storm, or for
bursts of a quarter of an hour. One burst in many days is ignored.
Shapes: S series, C channels, R of all series, T windows, D days of W windows, 2 directions, K alternatives.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers, Numbers
from ragtide.drift.detectors.arrays import ratio

# Of channels [R, T], direction and alternative; before division, 0 without an update.
LogLikelihoodRatios = Callable[[slice, int, int], Floats]
_RESERVE = 0.6
_MANY_DAYS = 4  # of which one may have a burst that is ignored
_SHORT, _NEARLY_ALL = 3, 0.75  # a burst makes this share of a drawup within this many windows
_MIN_POWER = 1e-3
_CHUNK = 8  # channels; their windows fit in a processor's cache


def temper(divisor: Floats, log_lr: LogLikelihoodRatios, excluded: Flags, a_day: int) -> Floats:
    """Raise divisors [S, C, 2, K] as history requires; `excluded` [S, C, T]: windows of incidents."""
    power = 1 / divisor.reshape(-1, *divisor.shape[2:])
    out = _by_day(excluded.reshape(len(power), -1), a_day)
    for first in range(0, len(power), _CHUNK):
        some = slice(first, first + _CHUNK)
        for alternative in range(power.shape[2]):
            ways = [_by_day(log_lr(some, way, alternative), a_day) for way in (0, 1)]
            power[some, :, alternative] = np.minimum(power[some, :, alternative], _max_powers(ways, out[some]))
    return 1 / power.reshape(divisor.shape)


def _max_powers(ways: Sequence[Floats], excluded: Flags) -> Floats:
    """Return the highest powers [R, 2] allowed by days of two directions [R, D, W]."""
    up, down = (_max_drawup(way) for way in ways)
    counted = _counted_drawup(ways[0], up, down, excluded), _counted_drawup(ways[1], down, up, excluded)
    windows = (ways[0] != 0).sum(axis=(1, 2))
    return np.stack([_max_power(one, windows) for one in counted], axis=1)


def _by_day(values: Numbers, a_day: int) -> Numbers:
    """Reshape windows [R, T] to days [R, D, W] that end with the last window, padded with zeros."""
    missing = -values.shape[1] % a_day
    return np.pad(values, ((0, 0), (missing, 0))).reshape(len(values), -1, a_day)


def _counted_drawup(log_lr: Floats, drawups: Floats, others: Floats, excluded: Flags) -> Floats:
    """Return the drawups of days [R, D] that count, without incidents; `others`: those of the opposite direction."""
    bursts, counted = _burst_drawup(log_lr, drawups), drawups.copy()
    some = np.flatnonzero(excluded.any(axis=(1, 2)))
    if len(some):
        kept = _max_drawup(np.where(excluded[some], 0.0, log_lr[some]))
        both_ways = np.minimum(drawups[some], others[some])
        counted[some] = np.maximum(kept, np.maximum(both_ways, bursts[some]))
    worst = counted.argmax(axis=1)
    rows = np.arange(len(log_lr))
    many = (log_lr != 0).any(axis=2).sum(axis=1) >= _MANY_DAYS
    forgiven = np.flatnonzero(many & (bursts[rows, worst] == counted[rows, worst]))
    counted[forgiven, worst[forgiven]] = 0.0
    return counted


def _max_power(counted: Floats, windows: Integers) -> Floats:
    """Return the highest power [R] that keeps drawups of days [R, D] of so many `windows` within bounds."""
    highest = -np.sort(-counted, axis=1)
    rank = np.arange(1, highest.shape[1] + 1)
    may = _RESERVE * np.log(np.maximum(windows[:, None] / rank, 1.0))
    power = np.where(highest > 0, ratio(may, highest), np.inf)
    found: Floats = np.maximum(power.min(axis=1), _MIN_POWER)
    return found


def _max_drawup(log_lr: Floats) -> Floats:
    """Return the maximum drawup of each day's cumulative sum [R, D]."""
    level = np.cumsum(log_lr, axis=2)
    lowest = np.minimum.accumulate(np.minimum(level, 0.0), axis=2)
    level[:, :, 1:] -= lowest[:, :, :-1]
    found: Floats = level.max(axis=2)
    return found


def _burst_drawup(log_lr: Floats, drawups: Floats) -> Floats:
    """Return the drawups [R, D] that were nearly all made within a few windows; 0 for others."""
    short, summed = log_lr.max(axis=2), log_lr.copy()
    for length in range(1, min(_SHORT, log_lr.shape[2])):
        summed[:, :, length:] += log_lr[:, :, :-length]
        short = np.maximum(short, summed[:, :, length:].max(axis=2))
    return np.where(short >= _NEARLY_ALL * drawups, drawups, 0.0)
