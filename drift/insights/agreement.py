"""Measure how well a number predicts people's labels of the same answers. Pure; 95 % intervals by a seeded bootstrap.

Area under the ROC curve: how often a liked answer has the better number than another one, ties half (Hanley and McNeil
1982). Brier score: the mean square of the number less 1 or 0. Expected calibration error: the mean distance, over ten
equal bins, between the number and the share of liked answers (Naeini and others 2015). The bootstrap resamples liked
and other answers separately (Efron and Tibshirani 1993, 8.3).
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragtide.drift.stats import CONFIDENCE, Interval, z_score

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_RESAMPLES = 500
_BINS = 10
_SEED = 1
_PERCENTILES = (50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE))
_NEARLY_1 = 1 - 1e-12


class IntervalEstimate(NamedTuple):
    """A number and its interval."""

    value: float
    interval: Interval


class Agreement(NamedTuple):
    """Estimates for numbers from 0 to 1, higher is better."""

    auc: IntervalEstimate
    brier: IntervalEstimate
    calibration_error: IntervalEstimate


def measure_agreement(numbers: Floats, liked: Flags) -> Agreement:
    """Compare `numbers` [n] from 0 to 1, higher is better, with `liked` [n]; some are liked, some not."""
    order = np.argsort(numbers, kind="stable")
    numbers, liked = numbers[order], liked[order]
    weights = np.vstack([np.ones(len(numbers)), _resample(liked)])
    auc = _auc(numbers, liked, weights)
    off = numbers - liked
    brier = weights @ off**2 / len(off)
    bins = np.minimum((numbers * _BINS).astype(np.int64), _BINS - 1)
    gaps = weights @ (off[:, None] * (bins[:, None] == np.arange(_BINS)))
    return Agreement(*(_estimate(one) for one in (auc, brier, np.abs(gaps).sum(axis=1) / len(off))))


def rank_correlation(a: Floats, b: Floats) -> IntervalEstimate:
    """Spearman's rho of two columns that vary, with Fisher's interval, its error after Bonett and Wright (2000)."""
    from scipy.stats import rankdata

    rho = float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
    rho = min(max(rho, -1.0), 1.0)
    middle = math.atanh(min(max(rho, -_NEARLY_1), _NEARLY_1))
    reach = z_score(CONFIDENCE) * math.sqrt((1 + rho**2 / 2) / (len(a) - 3))
    return IntervalEstimate(rho, Interval(math.tanh(middle - reach), math.tanh(middle + reach)))


def _resample(liked: Flags) -> Floats:
    """Count how often each answer is in each sample, [samples, n]."""
    rng = np.random.default_rng(_SEED)
    found = np.zeros((_RESAMPLES, len(liked)))
    for those in (liked, ~liked):
        count = int(those.sum())
        found[:, those] = rng.multinomial(count, np.full(count, 1 / count), _RESAMPLES)
    return found


def _auc(numbers: Floats, liked: Flags, weights: Floats) -> Floats:
    """Return the area for each row of weights; numbers ascend, and equal ones are one step."""
    steps = np.flatnonzero(np.diff(numbers, prepend=-np.inf))
    good = np.add.reduceat(weights * liked, steps, axis=1)
    bad = np.add.reduceat(weights * ~liked, steps, axis=1)
    below = np.cumsum(bad, axis=1) - bad / 2
    found: Floats = (good * below).sum(axis=1) / (good.sum(axis=1) * bad.sum(axis=1))
    return found


def _estimate(found: Floats) -> IntervalEstimate:
    """Estimate from values: the first is that of all answers, the others are those of the samples."""
    low, high = np.percentile(found[1:], _PERCENTILES)
    return IntervalEstimate(float(found[0]), Interval(float(low), float(high)))
