"""Agreement with people against the reference library, its intervals against what is known of chance."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import brier_score_loss, roc_auc_score

from ragtide.drift.insights.agreement import Floats, measure_agreement, rank_correlation

RNG = np.random.default_rng(11)
LIKED = RNG.random(300) < 0.4
NUMBERS: Floats = (0.3 * LIKED.astype(np.float64) + 0.7 * RNG.random(300)).round(2)  # with ties


def test_it_is_what_the_reference_library_says() -> None:
    told = measure_agreement(NUMBERS, LIKED)
    assert told.auc.value == pytest.approx(roc_auc_score(LIKED, NUMBERS))
    assert told.brier.value == pytest.approx(brier_score_loss(LIKED, NUMBERS))
    for figure in told:
        assert figure.interval.low < figure.interval.high
    assert told.auc.interval.low < told.auc.value < told.auc.interval.high
    assert told == measure_agreement(NUMBERS, LIKED)


def test_calibration_error_by_hand() -> None:
    """Bin 2 has 0.2 and 0.25 of which one is liked: |0.45 - 1| = 0.55; bin 9 has 0.9, 1 and 1, all liked: 0.1."""
    numbers, liked = np.array([0.2, 0.25, 0.9, 1.0, 1.0]), np.array([False, True, True, True, True])
    assert measure_agreement(numbers, liked).calibration_error.value == pytest.approx((0.55 + 0.1) / 5)


def test_an_area_that_is_chance_is_in_its_interval() -> None:
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(40):
        auc = measure_agreement(rng.random(120), rng.random(120) < 0.5).auc
        held += auc.interval.low <= 0.5 <= auc.interval.high
    assert held >= 34


def test_rank_correlation_is_spearmans() -> None:
    other: Floats = (NUMBERS**2 + 0.1 * RNG.random(300)).round(2)
    told = rank_correlation(NUMBERS, other)
    assert told.value == pytest.approx(spearmanr(NUMBERS, other).statistic)
    assert told.interval.low < told.value < told.interval.high
    assert rank_correlation(NUMBERS, -NUMBERS).value == pytest.approx(-1.0)


def test_the_interval_of_a_correlation_by_hand() -> None:
    """Ranks 1 to 5 against 2, 1, 4, 3, 5: squares of differences add up to 4, rho = 1 - 6 * 4 / 120 = 0.8; its error is
    sqrt((1 + 0.32) / 2) = 0.8124 on the scale of atanh(0.8) = 1.0986.
    """
    told = rank_correlation(np.array([1.0, 2, 3, 4, 5]), np.array([20.0, 10, 40, 30, 50]))
    assert told.value == pytest.approx(0.8)
    reach = 1.959964 * 0.812404
    assert told.interval == pytest.approx((np.tanh(1.098612 - reach), np.tanh(1.098612 + reach)), abs=1e-5)
