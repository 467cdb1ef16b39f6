"""Differences against SciPy's tests, and by hand where those have none."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragtide.drift.stats.means import Difference, Sample, mean_interval, paired_difference, unpaired_difference
from ragtide.drift.stats.multiple_testing import benjamini_hochberg

A = [0.61, 0.72, 0.55, 0.91, 0.40, 0.83, 0.77]
B = [0.58, 0.75, 0.41, 0.80, 0.42, 0.70, 0.66]
numbers = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30).filter(lambda values: np.std(values) > 1e-3)


def sample(values: list[float]) -> Sample:
    return Sample(len(values), float(np.mean(values)), float(np.var(values, ddof=1)) if len(values) > 1 else math.nan)


def numbers_of(found: Difference) -> tuple[float, ...]:
    assert None not in (found.value, found.low, found.high, found.p)
    return tuple(float(value) for value in (found.value, found.low, found.high, found.p) if value is not None)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_pairs_are_as_ttest_rel(confidence: float) -> None:
    found = paired_difference(sample([b - a for a, b in zip(A, B, strict=True)]), confidence)
    known = stats.ttest_rel(B, A)
    low, high = known.confidence_interval(confidence)
    assert numbers_of(found) == pytest.approx((np.mean(B) - np.mean(A), low, high, known.pvalue))


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_the_interval_of_a_mean_is_that_of_ttest_1samp(confidence: float) -> None:
    assert mean_interval(sample(A), confidence) == pytest.approx(
        stats.ttest_1samp(A, 0).confidence_interval(confidence)
    )


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0, 2.0]])
def test_a_mean_of_too_few_or_equal_values_has_no_interval(values: list[float]) -> None:
    assert mean_interval(sample(values) if values else Sample(0, math.nan, math.nan)) is None


@given(numbers, numbers)
def test_independent_samples_are_as_ttest_ind(a: list[float], b: list[float]) -> None:
    known = stats.ttest_ind(b, a, equal_var=False)
    low, high = known.confidence_interval(0.95)
    expected = (np.mean(b) - np.mean(a), low, high, known.pvalue)
    assert numbers_of(unpaired_difference(sample(a), sample(b))) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_by_hand() -> None:
    """Changes 1, 2, 3: mean 2, s = 1, t(2) at 97.5 % = 4.3027, so 2 ± 4.3027 / sqrt(3)."""
    found = paired_difference(Sample(3, 2.0, 1.0))
    assert found.low == pytest.approx(2 - 4.302653 / 3**0.5, abs=1e-6)
    assert found.high == pytest.approx(2 + 4.302653 / 3**0.5, abs=1e-6)


@pytest.mark.parametrize("n", [2, 5, 6, 40, 5000])
def test_changes_that_are_all_the_same_are_judged_by_their_number(n: int) -> None:
    found = paired_difference(Sample(n, -1.0, 0.0))
    assert (found.value, found.low, found.high) == (-1.0, None, None)
    assert found.p == pytest.approx(stats.binomtest(n, n, 0.5).pvalue)
    assert paired_difference(Sample(n, 0.1, 1e-34)).p == found.p  # that is rounding: 0.6 - 0.5 is not 0.4 - 0.3
    assert paired_difference(Sample(n, 0.0, 0.0)) == Difference(0.0, p=1.0)


@pytest.mark.parametrize(("n_a", "n_b"), [(2, 2), (3, 3), (4, 9), (50, 50)])
def test_two_constants_are_told_apart_as_fisher_does(n_a: int, n_b: int) -> None:
    found = unpaired_difference(Sample(n_a, 0.0, 0.0), Sample(n_b, 1.0, 0.0))
    exact = stats.fisher_exact([[n_a, 0], [0, n_b]]).pvalue
    assert found.low is None
    assert found.p == pytest.approx(exact if n_a == n_b else 2 * exact)
    assert unpaired_difference(Sample(n_a, 0.5, 0.0), Sample(n_b, 0.5, 0.0)) == Difference(0.0, p=1.0)


def test_a_million_of_each() -> None:
    assert unpaired_difference(Sample(10**6, 0.0, 0.0), Sample(10**6, 1.0, 0.0)).p == 0.0
    found = unpaired_difference(Sample(10**6, 0.5, 0.0), Sample(10**6, 0.501, 0.25))
    assert numbers_of(found)[1:3] == pytest.approx((0.001 - 1.959966 * 5e-4, 0.001 + 1.959966 * 5e-4), abs=1e-8)


def test_a_variance_too_small_to_divide_is_none() -> None:
    assert paired_difference(Sample(4, 0.0, 5e-324)) == Difference(0.0, p=1.0)
    assert unpaired_difference(Sample(4, 0.0, 5e-324), Sample(4, 0.0, 0.0)) == Difference(0.0, p=1.0)


def test_one_value_tells_a_difference_and_no_more() -> None:
    assert paired_difference(Sample(1, 0.3, math.nan)) == Difference(0.3)
    assert unpaired_difference(Sample(1, 0.1, math.nan), Sample(9, 0.2, 0.01)) == Difference(0.1)


def test_adjusted_by_hand() -> None:
    """p(i) m / i, from the largest down never greater: 0.04 · 4/3 and 0.03 · 4/2 become 0.0533, 0.01 · 4/1 stays."""
    assert benjamini_hochberg([0.03, 0.01, 0.5, 0.04]) == pytest.approx([0.16 / 3, 0.04, 0.5, 0.16 / 3])
    assert benjamini_hochberg([]) == []
