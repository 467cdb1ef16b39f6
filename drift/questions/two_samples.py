"""Do two samples of questions differ, and by how much? A classifier two-sample test (Lopez-Paz and Oquab 2017). Pure.

A logistic regression learns to tell new questions from old ones by their vectors, and is asked of questions that it did
not learn from. The area under its ROC curve is how often it tells a new one from an old one: half of the time where
both are asked alike. The same question is never both learned from and asked of, however often users asked it.
"""

import math
from dataclasses import dataclass

import numpy as np

from drift.detectors.series import Floats, Integers
from drift.questions.area import Area, area
from drift.questions.logistic import fitted
from evaluators.spec import Vectors

LEAST = 100  # questions of either sample
_DIMENSIONS = 64  # in which the questions differ most: others are noise to learn
_FOLDS = 5
_PENALTY = 10.0
_REACH = 1.959964  # standard errors of 95 %


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """The held-out area, its standard error, and the log odds of each new question to be one [n] (NaN: not asked)."""

    area: float
    error: float
    log_odds: Floats

    @property
    def low(self) -> float:
        """Of the interval of 95 %."""
        return max(self.area - _REACH * self.error, 0.0)

    @property
    def high(self) -> float:
        """Of the interval of 95 %."""
        return min(self.area + _REACH * self.error, 1.0)


def apart(new: Vectors, old: Vectors, seed: int) -> Apart | None:
    """How far apart the samples [n, dimension] and [m, dimension] are; None where that cannot be told.

    The same vectors and seed have the same answer.
    """
    if min(len(new), len(old)) < LEAST:
        return None
    x = _principal(np.concatenate([new, old]))
    same = same_questions(np.concatenate([new, old]))
    is_new = np.arange(len(x)) < len(new)
    fold = (np.random.default_rng(seed).permutation(same.max() + 1) % _FOLDS)[same]
    log_odds = np.full(len(x), np.nan)
    parts: list[tuple[Area, int]] = []
    for number in range(_FOLDS):
        asked = fold == number
        pairs = int((asked & is_new).sum()) * int((asked & ~is_new).sum())
        if not pairs or is_new[~asked].all() or not is_new[~asked].any():
            continue
        log_odds[asked] = fitted(x[~asked], is_new[~asked], _PENALTY).log_odds(x[asked])
        mine, others = np.flatnonzero(asked & is_new), np.flatnonzero(asked & ~is_new)
        parts.append((area(log_odds[mine], log_odds[others], same[mine], same[others]), pairs))
    return _together(parts, log_odds[: len(new)])


def same_questions(vectors: Vectors) -> Integers:
    """A number for each vector [n]; those that are the same have the same."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(vector.tobytes(), len(numbers)) for vector in vectors], np.int64)


def _together(parts: list[tuple[Area, int]], log_odds: Floats) -> Apart | None:
    """The mean over folds by their pairs (LeDell, Petersen and van der Laan 2015): none shares a question."""
    pairs = sum(number for _, number in parts)
    if not pairs or not all(math.isfinite(one.error) for one, _ in parts):
        return None
    value = sum(one.value * number for one, number in parts) / pairs
    error = math.sqrt(sum((one.error * number) ** 2 for one, number in parts)) / pairs
    return Apart(value, error, log_odds)


def _principal(vectors: Vectors) -> Floats:
    """Along the directions of greatest variance, scaled so that a number's mean square is 1."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    directions = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :_DIMENSIONS]
    seen = centred @ directions
    scale = math.sqrt(float((seen**2).mean()))
    found: Floats = seen / scale if scale > 0 else seen
    return found
