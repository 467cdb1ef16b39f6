"""Move a baseline to a new level, as long as the new level's hours of the day are not known.

Season, noise, recurring ticks and horizons stay. The level moves by the mean difference of current records from their
expectation; the odds of a share by a factor. The uncertainty of the new level widens the margin.
Shapes: S series, C channels, T windows.
"""

import math
from dataclasses import replace

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers
from ragtide.drift.detectors import scores
from ragtide.drift.detectors.arrays import Scores
from ragtide.drift.detectors.baseline import MIN_UPDATES, Baseline

_ROUNDS = 8  # to a fixed point, which one reaches unless hours differ much
_MIN = 1e-6
_RARE = 0.005  # variance of a record; many labels of a mix are as rare


def relevel_scores(old: Baseline, now: Scores, known: Floats) -> tuple[Baseline, Flags]:
    """Move `old` to the mean and spread of `now`; also return which series [S] have enough records.

    `known` [S]: number of records that `old` was learned from.
    """
    seen = np.flatnonzero(now.n.sum(axis=0) > 0)
    n, total, squares = (np.asarray(array[:, seen], float) for array in (now.n, now.total, now.squares))
    usual = _expected(old, now.start[seen])
    freedom, scatter = (array[:, 1] for array in scores.to_channels(n, total, squares))
    shift = (total - n * usual[:, 0]).sum(axis=1) / np.maximum(n.sum(axis=1), 1.0)
    expected = (freedom * usual[:, 1]).sum(axis=1)
    wider = np.where(expected > 0, scatter.sum(axis=1) / np.maximum(expected, _MIN), 1.0)
    wider = np.maximum(wider, _MIN)

    def at(level: Floats) -> Floats:
        return np.stack([level[:, 0] + shift[:, None], level[:, 1] * wider[:, None]], axis=1).astype(level.dtype)

    base = np.full(old.tolerance.shape, scores.MARGIN)
    variance = old.level[:, 1].mean(axis=1)
    base[:, 1] = np.maximum(scores.SPREAD_MARGIN * variance, scores.MARGIN**2)
    found = _widen_margins(old, base, n.sum(axis=1), known)
    # Means vary more if records do; but if records vary less, means need not.
    more = np.maximum(wider, 1.0)
    size = np.stack([np.sqrt(more), more], axis=1)
    of_spread = np.stack([np.ones(len(more)), more], axis=1)
    releveled = replace(
        found,
        level=at(old.level),
        recurring=replace(old.recurring, level=at(old.recurring.level)),
        margin=found.margin * of_spread[:, :, None],
        tolerance=found.tolerance * of_spread,
        noise_per_record=old.noise_per_record * size**2,
        noise_floor=old.noise_floor * size**2,
        third_moment=old.third_moment * (size**3)[:, :, None],
        shifts=old.shifts * size[:, :, None],
    )
    return releveled, n.sum(axis=1) >= MIN_UPDATES * old.records[:, 0]


def relevel_proportions(
    old: Baseline, start: Integers, n: Floats, hits: Floats, known: Floats, margin: float
) -> tuple[Baseline, Flags]:
    """Move `old` to the shares of windows n [S, T], hits [S, C, T]; see `relevel_scores`. `margin`: of `old`'s odds.

    The level of a share stays if the share is and was too rare to be estimated.
    """
    seen = np.flatnonzero(n.sum(axis=0) > 0)
    n, hits, usual = n[:, seen], hits[:, :, seen], _expected(old, start[seen])
    records = np.maximum(n.sum(axis=1), 1.0)[:, None]
    wanted = _odds((hits.sum(axis=2) + 0.5) / (records + 1))
    factor = np.ones(wanted.shape)
    for _ in range(_ROUNDS):
        share = (n[:, None] * _scale_odds(usual, factor)).sum(axis=2) / records
        factor *= wanted / _odds(np.clip(share, _MIN, 1 - _MIN))
    most = np.maximum(_bernoulli_variance(wanted / (1 + wanted)), _bernoulli_variance(old.level.mean(axis=2)))
    estimable = records * most >= MIN_UPDATES
    factor = np.where(estimable, factor, 1.0)
    level = _scale_odds(old.level, factor)
    coins = _bernoulli_variance(level.mean(axis=2)) / _bernoulli_variance(old.level.mean(axis=2))
    found = _widen_margins(old, np.full(old.tolerance.shape, math.log1p(margin)), n.sum(axis=1), known)
    releveled = replace(
        found,
        level=level,
        recurring=replace(old.recurring, level=_scale_odds(old.recurring.level, factor)),
        tolerance=found.tolerance * coins,
        min_records_to_clear=old.min_records_to_clear / np.minimum(coins, 1.0),
    )
    many = n.sum(axis=1) >= MIN_UPDATES * np.where(old.active, old.records, np.inf).min(axis=1)
    return releveled, many & (estimable | (most < _RARE) | ~old.active).all(axis=1)


def _expected(old: Baseline, start: Integers) -> Floats:
    """Return the expectation of windows [S, C, T]."""
    nothing = np.zeros((*old.level.shape[:2], 0))
    return np.concatenate([nothing, *(old.expected(int(at)).level[:, :, None] for at in start)], axis=2)


def _scale_odds(share: Floats, factor: Floats) -> Floats:
    """Multiply the odds of shares [S, C, ...] by `factor`."""
    odds = factor[:, :, None]
    return (odds * share / (1 + (odds - 1) * share)).astype(share.dtype)


def _odds(share: Floats) -> Floats:
    return share / (1 - share)


def _bernoulli_variance(share: Floats) -> Floats:
    """Return the variance of a record."""
    return share * (1 - share)


def _widen_margins(old: Baseline, base: Floats, records: Floats, known: Floats) -> Baseline:
    """Widen the part of the margins that stands for the uncertainty of the level, now of old and new level together.

    Its variance is inversely proportional to the number of records, for any noise and autocorrelation.
    """
    wider = np.sqrt(1 + known / np.maximum(records, 1.0))[:, None]
    error = np.maximum(old.margin - base[:, :, None], 0.0) * wider[:, :, None]
    margin = base[:, :, None] + error
    usual = np.where(np.isfinite(old.margin[:, :, 0]), old.margin[:, :, 0], base)
    grown = np.where(np.isfinite(margin[:, :, 0]), margin[:, :, 0], base) / usual
    return replace(old, margin=margin, tolerance=old.tolerance * grown)
