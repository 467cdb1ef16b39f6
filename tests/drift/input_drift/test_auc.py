"""The area and its error against scikit-learn, against DeLong's sums as they are written, and by hand."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ragtide.drift.array_types import Floats
from ragtide.drift.input_drift.classifier_test import auc


def different(n: int, first: int = 0) -> np.ndarray:
    return np.arange(first, first + n)


def delong(new: Floats, old: Floats) -> float:
    """The standard error, pair by pair: DeLong, DeLong and Clarke-Pearson 1988, equations 3 to 6."""
    psi = np.where(new[:, None] > old, 1.0, np.where(new[:, None] == old, 0.5, 0.0))
    return math.sqrt(psi.mean(axis=1).var(ddof=1) / len(new) + psi.mean(axis=0).var(ddof=1) / len(old))


@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_repeats_it_is_scikit_learns_area_and_delongs_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    new, old = rng.normal(0.4, 1, 70).round(1), rng.normal(0, 1, 45).round(1)
    found = auc(new, old, different(70), different(45, 70))
    assert found.value == pytest.approx(roc_auc_score([1] * 70 + [0] * 45, np.concatenate([new, old])))
    assert found.error == pytest.approx(delong(new, old))


def test_by_hand() -> None:
    """New 2, 3 and 4, old 1 and 3: of six pairs 2 > 1, 4 > 1, 4 > 3, 3 > 1 and half of 3 = 3: 4.5 / 6 = 0.75.

    By new ones 1/2, 3/4 and 1 (variance 1/16), by old ones 1 and 1/2 (variance 1/8): 1/48 + 1/16 = 1/12.
    """
    found = auc(np.array([2.0, 3, 4]), np.array([1.0, 3]), different(3), different(2, 3))
    assert found == pytest.approx((0.75, math.sqrt(1 / 12)))


def test_who_asks_everything_twice_says_no_more_than_who_asks_once() -> None:
    rng = np.random.default_rng(1)
    new, old = rng.normal(0.5, 1, 30), rng.normal(0, 1, 40)
    once = auc(new, old, different(30), different(40, 30))
    twice = auc(np.tile(new, 2), np.tile(old, 2), np.tile(different(30), 2), np.tile(different(40, 30), 2))
    assert twice == pytest.approx(once)


def test_a_question_as_frequent_in_both_samples_is_no_evidence_and_one_of_one_sample_alone_is_little() -> None:
    """A third of either sample has the greatest number: one question, or one of the new and another of the old."""
    rng = np.random.default_rng(2)
    new, old = (np.append(rng.normal(0, 1, 200), np.full(100, 3.0)) for _ in range(2))
    of_new, of_old = np.append(different(200), np.full(100, 999)), np.append(different(200, 200), np.full(100, 999))
    same = auc(new, old, of_new, of_old)
    assert same.error < delong(new, old)
    assert auc(new, old, np.where(of_new == 999, 998, of_new), of_old).error > 4 * same.error


def test_a_sample_of_one_question_tells_nothing() -> None:
    assert auc(np.ones(5), np.arange(5.0), np.zeros(5, int), different(5, 1)).error == math.inf
