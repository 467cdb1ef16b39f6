"""The statistic: likelihood ratios against SciPy's distributions, and what a mixture of them may promise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from ragtide.drift.array_types import Floats
from ragtide.drift.detectors import e_detector
from ragtide.drift.detectors.baseline import log_threshold
from ragtide.drift.detectors.e_detector import Evidence, Update


def one(value: float) -> Floats:
    return np.full((1, 1), value)


@given(st.integers(1, 300), st.floats(0.001, 0.999), st.floats(0.2, 5.0))
def test_bernoulli_increments_are_likelihood_ratios(n: int, share: float, ratio: float) -> None:
    odds = share / (1 - share)
    changed = odds * ratio / (1 + odds * ratio)
    for hits in {0, n // 3, n}:
        known = stats.binom.logpmf(hits, n, changed) - stats.binom.logpmf(hits, n, share)
        found = e_detector.bernoulli_increments(one(n), one(hits), np.full((1, 1, 1), odds), np.full((1, 1), ratio))
        assert found.item() == pytest.approx(known, rel=1e-9, abs=1e-9)


def test_a_share_that_cannot_be_less_gives_no_evidence_of_a_fall() -> None:
    found = e_detector.bernoulli_increments(one(500), one(0), np.zeros((1, 1, 1)), np.full((1, 1), 0.5))
    assert found.item() == 0


@given(st.floats(0.05, 4), st.floats(0.05, 4), st.floats(-3, 5), st.floats(0.1, 5))
def test_skewed_increments_are_likelihood_ratios_of_poisson_jumps(
    jump: float, variance: float, x: float, shift: float
) -> None:
    """An error of `jump` times (a Poisson variable less its mean): its log pmf is linear in counts, whole or not."""

    def log_pmf(count: float, mean: float) -> float:
        return count * math.log(mean) - mean - float(special.gammaln(count + 1))

    before = variance / jump**2
    count = max(x / jump + before, 0.0)
    known = log_pmf(count, before + shift / jump) - log_pmf(count, before)
    at = np.full((1, 1, 1), (count - before) * jump)
    found = e_detector.poisson_increments(at, one(variance), one(jump * variance), one(shift))
    assert found.item() == pytest.approx(known, rel=1e-6, abs=1e-6)


def test_without_skewness_they_are_those_of_gaussian_errors() -> None:
    known = stats.norm.logpdf(0.7, 0.5, 0.3) - stats.norm.logpdf(0.7, 0.0, 0.3)
    x, shift = np.full((1, 1, 1), 0.7), np.full((1, 1, 1), 0.5)
    for third in (0.0, 1e-12):
        found = e_detector.poisson_increments(x, one(0.09), np.full((1, 1, 1), third), shift)
        assert found.item() == pytest.approx(known, rel=1e-6)


@pytest.mark.parametrize("divisor", [1.0, 1.7])
@pytest.mark.parametrize("share", [0.002, 0.009, 0.011])
def test_no_increment_gains_while_nothing_changed(share: float, divisor: float) -> None:
    """E exp(increment) <= 1 for all shares up to the margin, exactly: the sum over all outcomes."""
    n, margin = 200, 0.011
    hits = np.arange(n + 1.0)
    outcomes = stats.binom.pmf(hits, n, share)
    odds, ratios = np.array(margin / (1 - margin)), np.array([1.25, 1.5, 2.0, 3.0, 5.0])
    gains = np.exp(e_detector.bernoulli_increments(np.array(float(n)), hits[:, None], odds, ratios) / divisor)
    assert (outcomes @ gains <= 1 + 1e-9).all()


def updates(increments: list[float]) -> list[Update]:
    zero = np.zeros((1, 1))
    return [
        Update(np.ones((1, 1), bool), np.full((1, 1), at), one(2.0), one(0.5), zero, np.full((1, 1, 2, 1), value))
        for at, value in enumerate(increments)
    ]


def test_by_hand() -> None:
    """M: e, then (1 + e) / e^3 < 1, then (1 + that) e: the onset is the third update."""
    state = Evidence.none(1, 1, 1)
    found = []
    for update in updates([1.0, -3.0, 1.0]):
        e_detector.add(state, update)
        found.append(math.exp(e_detector.log_e(state, np.ones((1, 1), bool)).item()))
    second = (1 + math.e) * math.exp(-3)
    assert found == pytest.approx([math.e, second, (1 + second) * math.e])
    assert state.onset.ravel().tolist() == [2, 2]
    assert state.records.ravel().tolist() == [2.0, 2.0]
    assert state.residual.ravel().tolist() == [0.5, 0.5]


def test_no_update_says_more_than_what_two_have_to_say() -> None:
    state = Evidence.none(1, 1, 1)
    [update] = updates([700.0])
    e_detector.add(state, update)
    assert state.log_m.ravel().tolist() == [e_detector.MAX_INCREMENT] * 2
    assert e_detector.MAX_INCREMENT < log_threshold(300) < 2 * e_detector.MAX_INCREMENT


def test_the_mean_is_over_channels_that_are_watched() -> None:
    state = Evidence.none(1, 3, 1)
    state.log_m[0, 0] = math.log(6.0)
    assert e_detector.log_e(state, np.array([[True, True, True]])).item() == pytest.approx(math.log(2.0))
    assert e_detector.log_e(state, np.array([[True, False, False]])).item() == pytest.approx(math.log(6.0))
    assert e_detector.log_e(state, np.array([[False, True, True]])).item() < -600


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=30), st.integers(0, 29))
def test_more_evidence_never_makes_less(increments: list[float], place: int) -> None:
    more = list(increments)
    more[place % len(more)] += 0.5
    ends = []
    for values in (increments, more):
        state = Evidence.none(1, 1, 1)
        for update in updates(values):
            e_detector.add(state, update)
        ends.append(e_detector.log_e(state, np.ones((1, 1), bool)).item())
    assert ends[1] >= ends[0]
