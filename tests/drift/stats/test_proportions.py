"""Intervals against published examples, and p against sums worked by hand."""

import math

import pytest

from ragtide.drift.stats.proportions import Share, fisher_p, fisher_p_values, lift, share_difference, wilson


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_is_newcombes_method_3(hits: int, n: int, low: float, high: float) -> None:
    """Newcombe 1998, Statistics in Medicine 17, 857-872, table I."""
    assert wilson(Share(hits, n)) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("here", "there", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 20), 0.6791, 1.0),
        ((0, 10), (0, 20), -0.1611, 0.2775),
    ],
)
def test_differences_are_newcombes_method_10(
    here: tuple[int, int], there: tuple[int, int], low: float, high: float
) -> None:
    """Newcombe 1998, Statistics in Medicine 17, 873-890, table II."""
    assert share_difference(Share(*here), Share(*there)) == pytest.approx((low, high), abs=5e-5)


def test_p_is_the_share_of_deals_with_so_many_hits() -> None:
    """3 of 3 here, 1 of 3 there: of C(6, 3) = 20 ways to deal, C(4, 3) C(2, 0) = 4 give here at least 3 hits."""
    assert fisher_p(Share(3, 3), Share(1, 3)) == pytest.approx(4 / 20)
    assert fisher_p(Share(0, 3), Share(1, 3)) == pytest.approx(1.0)
    assert fisher_p_values([(Share(3, 3), Share(1, 3)), (Share(0, 3), Share(1, 3))]) == pytest.approx([4 / 20, 1.0])
    assert fisher_p_values([]) == []


def test_lift_is_the_ratio_and_its_interval_of_the_logarithm() -> None:
    """(30.5 / 100.5) / (10.5 / 100.5) = 2.905; variance 1/30.5 - 1/100.5 + 1/10.5 - 1/100.5 = 0.10812."""
    found = lift(Share(30, 100), Share(10, 100))
    reach = math.exp(1.959964 * math.sqrt(0.108124))
    assert found == pytest.approx((2.90476, 2.90476 / reach, 2.90476 * reach), rel=1e-4)
    assert math.isfinite(lift(Share(3, 3), Share(0, 5)).high)


def test_the_interval_of_no_hits_begins_at_0_and_that_of_all_ends_at_1() -> None:
    for n in range(1, 2_000, 7):
        assert wilson(Share(0, n)).low == 0
        assert wilson(Share(n, n)).high == 1
