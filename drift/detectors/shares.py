"""Changes in shares of records: exact Bernoulli likelihoods for odds times 1.25 to 5, either way, beyond a margin.

What `rates`, `positives` and `categories` have in common: hits [S, C, T] among records n [S, T]. Every window with a
record counts. Where shares vary more than coins do (bursts, wander), increments are divided by how much more; a power
of a likelihood ratio below 1 has an expectation below 1 too, so that the run length stands.
"""

from dataclasses import replace

import numpy as np

from drift.detectors import baseline as fits
from drift.detectors import evidence, tempering, watching
from drift.detectors.baseline import Baseline
from drift.detectors.evidence import Update
from drift.detectors.recurring import Usual
from drift.detectors.season import DAY_S
from drift.detectors.series import Flags, Floats, Integers, Numbers, Watched
from drift.detectors.tempering import Increments
from drift.detectors.watching import State

MARGIN = 0.1  # of the odds
RATIOS = np.array([1.25, 1.5, 2.0, 3.0, 5.0])
_EITHER_WAY = np.stack([RATIOS, 1 / RATIOS])
_DIRECTIONS = np.array([1.0, -1.0])
_NOTHING = 1e-12
_WIDEST = 20.0  # log odds
_LEAST_RECORDS = 10
_SETTLED_RECORDS = 30  # to judge by whether an alarm is over, and hits expected among them
_SETTLED_HITS = 3
_LEAST_UPDATES = 100  # that a history is cut into, where hits are so rare that it holds few
_MOST_SHARE = 1 - 2.0**-24  # below 1 in single precision
_MOST = 1e12  # records of a window


def fit(
    start: Integers, n: Floats, hits: Floats, size_s: int, seasonal: bool, margin: float, least_share: Floats
) -> Baseline:
    """The baseline of valid windows; `least_share` [S, C]: hours with less are taken to have it."""
    learned = fits.learn(start, n, hits, np.ones(hits.shape[:2]), size_s, seasonal)
    records = learned.n.sum(axis=1)[:, None]
    least_share = np.maximum(least_share, 0.5 / np.maximum(records, 1.0))
    level = _shares(learned.level, least_share)
    usual = level.mean(axis=2, dtype=np.float64)
    coin = usual * (1 - usual)
    least = np.clip(1 / coin, _LEAST_RECORDS, np.maximum(records / _LEAST_UPDATES, _LEAST_RECORDS))
    of_channel = np.broadcast_to(learned.n[:, None], hits.shape)
    found = fits.noise_of(of_channel, hits, learned, least, coin)
    log_margin = np.log1p(margin) + np.minimum(fits.margin_of_error(found) / coin, _WIDEST)
    log_margin = np.repeat(log_margin[:, :, None], 2, axis=2)
    # A share that some hour takes for more than it is cannot fall.
    log_margin[:, :, 1][learned.level.min(axis=2) <= least_share] = np.inf
    a, b = found.a / coin, found.b / coin
    threshold, a_day = fits.log_threshold(size_s), max(DAY_S // size_s, 1)
    spread = ((a + b * found.records) / found.records)[:, :, None, None]
    divisor = fits.divisors(found, threshold * spread / _information(usual, log_margin))
    every = np.broadcast_to(n[:, None], hits.shape)
    varying = (a[:, :, None] + b[:, :, None] * np.maximum(every, found.records[:, :, None])) * learned.variance
    said = _said(every, hits, _shares(learned.unseen, least_share), log_margin, varying)
    warming = fits.warming(n, found.updates.min(axis=1), size_s, seasonal)
    return Baseline(
        warming=warming,
        active=np.repeat((warming == fits.Warming.WATCHED)[:, None], hits.shape[1], axis=1),
        known=fits.known_days(start, n, size_s, seasonal),
        level=level,
        weekly=learned.weekly,
        recurring=replace(learned.recurring, level=_shares(learned.recurring.level, least_share)),
        bins=np.zeros(usual.shape, np.int32),
        margin=log_margin,
        near=coin * log_margin[:, :, 0],
        settle=np.maximum(_SETTLED_RECORDS, _SETTLED_HITS / coin),
        a=a,
        b=b,
        third=np.zeros(log_margin.shape),
        records=found.records,
        shifts=np.tile(np.log(RATIOS), (*usual.shape, 1)),
        divisor=tempering.tempered(divisor, said, every > of_channel, a_day),
        size_s=size_s,
        threshold=threshold,
    )


def run(baseline: Baseline, state: State, start: Integers, n: Numbers, hits: Numbers) -> Watched:
    """Alarms after each of the windows n [S, T], hits [S, C, T]; `state` goes on to their end."""
    watching.advance(baseline, state, start)
    watched = Watched(np.zeros(n.shape, bool), np.zeros(n.shape))
    for index, at in enumerate(start):
        records, of_channel = valid(np.where(baseline.judged(int(at)), n[:, index], 0), hits[:, :, index])
        update = _update(baseline, int(at) // baseline.size_s, records, of_channel, baseline.usual(int(at)))
        watched.evidence[:, index] = watching.conclude(baseline, state, update)
        watched.alarm[:, index] = state.alarms.on
    return watched


def valid(n: Numbers, hits: Numbers) -> tuple[Floats, Floats]:
    """As floats n [S, ...], hits [S, C, ...]; windows that hold no numbers, or impossible ones, as empty ones."""
    records, of_channel = np.array(n, np.float64), np.array(hits, np.float64)
    good: Flags = np.isfinite(records) & (records >= 1) & (records <= _MOST)
    good &= ((of_channel >= 0) & (of_channel <= records[:, None])).all(axis=1)
    records[~good] = 0.0
    of_channel[np.broadcast_to(~good[:, None], of_channel.shape)] = 0.0
    return records, of_channel


def _update(baseline: Baseline, window: int, n: Floats, hits: Floats, usual: Usual) -> Update:
    level = usual.level
    records = np.broadcast_to(n[:, None], hits.shape)
    odds = (level / (1 - level))[:, :, None] * np.exp(baseline.margin * _DIRECTIONS)
    spread = baseline.a + baseline.b * np.maximum(records, baseline.records)
    increments = evidence.bernoulli_increments(
        records[:, :, None, None], hits[:, :, None, None], odds[..., None], _EITHER_WAY
    )
    increments = increments / ((spread * usual.variance)[:, :, None, None] * baseline.divisor)
    expected = records * level
    first = np.full(hits.shape, window, np.int32)
    return Update(records > 0, first, records, hits - expected, expected, increments)


def _said(n: Floats, hits: Floats, level: Floats, log_margin: Floats, varying: Floats) -> Increments:
    """What history's windows [S, C, T] would have said, had these levels been expected of them."""
    rows = (-1, n.shape[2])
    n, hits, odds, varying = (array.reshape(rows) for array in (n, hits, level / (1 - level), varying))
    times = np.exp(log_margin * _DIRECTIONS).reshape(len(n), -1)

    def of(some: slice, direction: int, alternative: int) -> Floats:
        at_margin = odds[some] * times[some, direction, None]
        ratio = _EITHER_WAY[direction, alternative]
        return evidence.bernoulli_increments(n[some], hits[some], at_margin, ratio) / varying[some]

    return of


def _shares(level: Numbers, least: Floats) -> Numbers:
    """Levels [S, C, ...] that are neither 0 nor 1, of which nothing could be expected."""
    found: Numbers = np.clip(level, least[:, :, None], np.minimum(1 - least, _MOST_SHARE)[:, :, None])
    return found.astype(np.float32)


def _information(share: Floats, log_margin: Floats) -> Floats:
    """What a record is worth [S, C, 2, K] against the margin, where an alternative is true (Kullback and Leibler)."""
    odds = (share / (1 - share))[:, :, None] * np.exp(log_margin * _DIRECTIONS)
    moved = odds[..., None] * _EITHER_WAY
    less = np.log1p(moved) - np.log1p(odds)[..., None]
    worth: Floats = np.maximum(moved / (1 + moved) * np.log(_EITHER_WAY) - less, _NOTHING)
    return worth
