"""Classifier two-sample test of questions (Lopez-Paz and Oquab 2017): do two samples differ, and by how much? Pure.

A logistic regression learns to separate new from old questions by their vectors, and is evaluated on held-out ones. The
area under its ROC curve (AUC) is the probability to rank a new question above an old one: 0.5 if the samples are alike.
Repetitions of a question are in the same fold.

The variance of the AUC is DeLong's (1988), with repetitions of a question as one cluster (Obuchowski 1997)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers
from ragtide.drift.topics import principal_components
from ragtide.evaluators.spec import Vectors

MIN_QUESTIONS = 100  # of either sample
_DIMENSIONS = 64  # principal components; others would be noise
_FOLDS = 5
_PENALTY = 10.0
_Z_95 = 1.959964  # standard errors of a 95 % interval
_MAX_STEPS = 50
_CONVERGED = 1e-8  # largest step of a weight, relative to the largest weight or 1


class Auc(NamedTuple):
    """AUC and its standard error; infinite if a sample repeats one question only."""

    value: float
    error: float


def auc(new: Floats, old: Floats, same_new: Integers, same_old: Integers) -> Auc:
    """Return the AUC of scores `new` [n] against `old` [m], not empty; equal numbers in `same_*` mark repetitions."""
    above, under = _share_below(old, new), 1 - _share_below(new, old)
    value = float(above.mean())
    if min(len(np.unique(same_new)), len(np.unique(same_old))) < 2:
        return Auc(value, math.inf)
    questions, place = np.unique(np.concatenate([same_new, same_old]), return_inverse=True)
    of_new = np.bincount(place[: len(new)], above - value, len(questions)) / len(new)
    of_old = np.bincount(place[len(new) :], under - value, len(questions)) / len(old)
    variance = _sample_correction(same_new) * float(of_new @ of_new)
    variance += _sample_correction(same_old) * float(of_old @ of_old)
    variance += 2 * _sample_correction(questions) * float(of_new @ of_old)
    return Auc(value, math.sqrt(max(variance, 0.0)))


def _share_below(some: Floats, than: Floats) -> Floats:
    """Return the share of `some` below each of `than`; ties count half."""
    ordered = np.sort(some)
    counts = np.searchsorted(ordered, than, side="left") + np.searchsorted(ordered, than, side="right")
    return counts / 2 / len(some)


def _sample_correction(same: Integers) -> float:
    questions = len(np.unique(same))
    return questions / (questions - 1)


class LogisticModel(NamedTuple):
    """log odds = x @ weights + intercept."""

    weights: Floats
    intercept: float

    def log_odds(self, x: Floats) -> Floats:
        """Return the log odds of each row of x [n, dimension]."""
        return x @ self.weights + self.intercept


def fit_logistic(x: Floats, yes: Flags, penalty: float) -> LogisticModel:
    """Fit weights that minimise the sum of log losses over x [n, dimension] plus penalty / 2 of squared weights.

    The intercept has no penalty, so `yes` must have both values.
    """
    rows = np.column_stack([x, np.ones(len(x))])
    ridge = np.full(rows.shape[1], penalty)
    ridge[-1] = 0.0
    w = np.zeros(rows.shape[1])
    loss = _loss(rows, yes, ridge, w)
    for _ in range(_MAX_STEPS):
        p = 1 / (1 + np.exp(-np.clip(rows @ w, -500, 500)))
        curve = (rows * (p * (1 - p))[:, None]).T @ rows + np.diag(ridge)
        step = np.linalg.solve(curve, rows.T @ (p - yes) + ridge * w)
        while (better := _loss(rows, yes, ridge, w - step)) > loss and np.abs(step).max() > _CONVERGED:
            step = step / 2
        w, loss = w - step, better
        if np.abs(step).max() <= _CONVERGED * max(1.0, np.abs(w).max()):
            break
    return LogisticModel(w[:-1], float(w[-1]))


def _loss(rows: Floats, yes: Flags, ridge: Floats, w: Floats) -> float:
    z = rows @ w
    return float(np.logaddexp(0.0, np.where(yes, -z, z)).sum() + ridge @ w**2 / 2)


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierTest:
    """Held-out AUC, its standard error, and log odds of each new question to be new [n] (NaN: not evaluated)."""

    auc: float
    error: float
    log_odds: Floats

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return max(self.auc - _Z_95 * self.error, 0.0)

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return min(self.auc + _Z_95 * self.error, 1.0)


def classifier_test(new: Vectors, old: Vectors, seed: int) -> ClassifierTest | None:
    """Test two samples [n, dimension], [m, dimension]; None: too few questions. Deterministic for the same seed."""
    if min(len(new), len(old)) < MIN_QUESTIONS:
        return None
    both = np.concatenate([new, old])
    x, same = _scaled_components(both), same_questions(both)
    is_new = np.arange(len(x)) < len(new)
    fold = (np.random.default_rng(seed).permutation(same.max() + 1) % _FOLDS)[same]
    log_odds = np.full(len(x), np.nan)
    parts: list[tuple[Auc, int]] = []
    for number in range(_FOLDS):
        held_out = fold == number
        pairs = int((held_out & is_new).sum()) * int((held_out & ~is_new).sum())
        if not pairs or is_new[~held_out].all() or not is_new[~held_out].any():
            continue
        log_odds[held_out] = fit_logistic(x[~held_out], is_new[~held_out], _PENALTY).log_odds(x[held_out])
        mine, others = np.flatnonzero(held_out & is_new), np.flatnonzero(held_out & ~is_new)
        parts.append((auc(log_odds[mine], log_odds[others], same[mine], same[others]), pairs))
    return _combine(parts, log_odds[: len(new)])


def same_questions(vectors: Vectors) -> Integers:
    """Number the vectors [n]; equal vectors get equal numbers."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(vector.tobytes(), len(numbers)) for vector in vectors], np.int64)


def _combine(parts: list[tuple[Auc, int]], log_odds: Floats) -> ClassifierTest | None:
    """Average folds, weighted by pairs (LeDell, Petersen and van der Laan 2015); they share no question."""
    pairs = sum(number for _, number in parts)
    if not pairs or not all(math.isfinite(one.error) for one, _ in parts):
        return None
    value = sum(one.value * number for one, number in parts) / pairs
    error = math.sqrt(sum((one.error * number) ** 2 for one, number in parts)) / pairs
    return ClassifierTest(value, error, log_odds)


def _scaled_components(vectors: Vectors) -> Floats:
    """Return principal components with a mean square of 1."""
    found = principal_components(vectors, _DIMENSIONS)
    scale = math.sqrt(float((found**2).mean()))
    return found / scale if scale > 0 else found
