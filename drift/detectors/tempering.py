"""Divisors of increments under which history itself would have been no evidence: how far bursts and storms may go.

While nothing changed, evidence climbs to x about once in exp(x) windows at most, or the run length does not stand. A
likelihood ratio keeps to that where errors are what noise is taken for; where bursts come at whatever minute, or hours
that are worse at whatever hour, it climbs higher. So the power of each alternative is lowered until the days of history
climb no higher than they may: the k-th highest of N windows to 0.6 log(N / k), since history is one draw and the next
goes further; where history is calm it stays. Incidents are no reason to look away: hours that are left out count only
where the day went both ways, as storms do, or for bursts of a quarter of an hour, and one burst of many days is none.
Shapes: S series, C channels, R of all series, T windows, D days of W windows, 2 directions, K alternatives.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ragtide.drift.detectors.arrays import Flags, Floats, Integers, Numbers, ratio

# Of some channels [R, T], a direction and an alternative: undivided; 0 without an update.
LogLikelihoodRatios = Callable[[slice, int, int], Floats]
_RESERVE = 0.6
_MANY_DAYS = 4  # of which one may have a burst
_SHORT, _NEARLY_ALL = 3, 0.75  # windows in which a burst climbs so much of the way
_MIN_POWER = 1e-3
_CHUNK = 8  # channels: their windows fit a processor's cache


def temper(divisor: Floats, log_lr: LogLikelihoodRatios, excluded: Flags, a_day: int) -> Floats:
    """Divisors [S, C, 2, K], raised where history asks for it; `left_out` [S, C, T]: windows of incidents."""
    power = 1 / divisor.reshape(-1, *divisor.shape[2:])
    out = _by_day(excluded.reshape(len(power), -1), a_day)
    for first in range(0, len(power), _CHUNK):
        some = slice(first, first + _CHUNK)
        for alternative in range(power.shape[2]):
            ways = [_by_day(log_lr(some, way, alternative), a_day) for way in (0, 1)]
            power[some, :, alternative] = np.minimum(power[some, :, alternative], _max_powers(ways, out[some]))
    return 1 / power.reshape(divisor.shape)


def _max_powers(ways: Sequence[Floats], excluded: Flags) -> Floats:
    """The highest powers [R, 2] that days of two directions [R, D, W] allow."""
    up, down = (_max_drawup(way) for way in ways)
    counted = _counted_drawup(ways[0], up, down, excluded), _counted_drawup(ways[1], down, up, excluded)
    windows = (ways[0] != 0).sum(axis=(1, 2))
    return np.stack([_max_power(one, windows) for one in counted], axis=1)


def _by_day(values: Numbers, a_day: int) -> Numbers:
    """Windows [R, T] as [R, D, W], counted back from the last; zeros before the first."""
    missing = -values.shape[1] % a_day
    found: Numbers = np.pad(values, ((0, 0), (missing, 0))).reshape(len(values), -1, a_day)
    return found


def _counted_drawup(log_lr: Floats, climbs: Floats, others: Floats, excluded: Flags) -> Floats:
    """The `climbs` of days [R, D] without those of incidents; `others` are the climbs of the opposite direction."""
    bursts, counted = _burst_drawup(log_lr, climbs), climbs.copy()
    some = np.flatnonzero(excluded.any(axis=(1, 2)))
    if len(some):
        kept = _max_drawup(np.where(excluded[some], 0.0, log_lr[some]))
        both_ways = np.minimum(climbs[some], others[some])
        counted[some] = np.maximum(kept, np.maximum(both_ways, bursts[some]))
    worst = counted.argmax(axis=1)
    rows = np.arange(len(log_lr))
    many = (log_lr != 0).any(axis=2).sum(axis=1) >= _MANY_DAYS
    forgiven = np.flatnonzero(many & (bursts[rows, worst] == counted[rows, worst]))
    counted[forgiven, worst[forgiven]] = 0.0
    return counted


def _max_power(counted: Floats, windows: Integers) -> Floats:
    """The highest power [R] by which climbs of days [R, D], of so many `windows`, go no higher than they may."""
    highest = -np.sort(-counted, axis=1)
    rank = np.arange(1, highest.shape[1] + 1)
    may = _RESERVE * np.log(np.maximum(windows[:, None] / rank, 1.0))
    power = np.where(highest > 0, ratio(may, highest), np.inf)
    found: Floats = np.maximum(power.min(axis=1), _MIN_POWER)
    return found


def _max_drawup(log_lr: Floats) -> Floats:
    """How far the sum of each day [R, D] climbs at most above where it was earlier in that day."""
    level = np.cumsum(log_lr, axis=2)
    lowest = np.minimum.accumulate(np.minimum(level, 0.0), axis=2)
    level[:, :, 1:] -= lowest[:, :, :-1]
    found: Floats = level.max(axis=2)
    return found


def _burst_drawup(log_lr: Floats, climbs: Floats) -> Floats:
    """The climbs [R, D] that were nearly all made within a few windows; 0 for others."""
    short, summed = log_lr.max(axis=2), log_lr.copy()
    for length in range(1, min(_SHORT, log_lr.shape[2])):
        summed[:, :, length:] += log_lr[:, :, :-length]
        short = np.maximum(short, summed[:, :, length:].max(axis=2))
    return np.where(short >= _NEARLY_ALL * climbs, climbs, 0.0)
