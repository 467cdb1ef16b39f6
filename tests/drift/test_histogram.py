"""Shares beyond a threshold of a whole hundredth are exact; logarithmic bins are within 1 %."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.drift.windows.histogram import LOG_ORIGIN, Scale
from ragtide.evaluators.spec import Better

betters: st.SearchStrategy[Better] = st.sampled_from(["higher", "lower"])
ranges = st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (1.0, 5.0), (0.0, 100.0)])


@given(
    range_=ranges,
    better=betters,
    values=st.lists(st.floats(0, 1) | st.integers(0, 100).map(lambda i: i / 100), max_size=30),
    step=st.integers(0, 100),
)
def test_shares_on_the_good_side_are_exact(
    range_: tuple[float, float], better: Better, values: list[float], step: int
) -> None:
    low, high = range_
    scale = Scale(low, high, better)
    placed = [low + (high - low) * value for value in values]
    bins: dict[int, int] = {}
    for value in placed:
        bins[scale.bin(value)] = bins.get(scale.bin(value), 0) + 1
    threshold = low + (high - low) * step / 100
    if better == "higher":
        assert scale.below(bins, threshold) == sum(value < threshold for value in placed)
    else:
        assert scale.above(bins, threshold) == sum(value > threshold for value in placed)


def test_the_edge_lies_on_the_good_side() -> None:
    higher, lower = Scale(0, 1, "higher"), Scale(0, 1, "lower")
    assert higher.bin(0.29) == 29  # 0.29 * 100 is 28.999999999999996
    assert higher.bin(0.28999) == 28
    assert higher.bin(1.0) == 100
    assert lower.bin(0.29) == 29
    assert lower.bin(0.29001) == 30
    assert lower.bin(0.0) == 0
    assert lower.bin(1e-12) == 1


def test_an_equal_value_is_never_beyond_the_other_line_either() -> None:
    higher, lower = Scale(0, 1, "higher"), Scale(0, 1, "lower")
    assert higher.above({higher.bin(0.5): 3}, 0.5) == 0
    assert lower.below({lower.bin(0.5): 3}, 0.5) == 0
    assert higher.above({higher.bin(0.52): 3}, 0.5) == 3
    assert lower.below({lower.bin(0.48): 3}, 0.5) == 3


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_logarithmic_bins_keep_the_order_of_values(one: float, other: float) -> None:
    scale = Scale(-math.inf, math.inf, "lower")
    assert (scale.bin(one) < scale.bin(other)) <= (one < other)
    assert scale.bin(-one) == -scale.bin(one)


@given(st.floats(1e-300, 1e300))
def test_a_logarithmic_bin_is_one_percent_wide(value: float) -> None:
    index = Scale(0, math.inf, "lower").bin(value) - LOG_ORIGIN
    assert index * math.log(1.01) == pytest.approx(math.log(value), abs=math.log(1.01) * 1.0001)


def test_thresholds_snap_to_hundredths_of_the_range() -> None:
    assert Scale(0, 1, "higher").snap(0.754) == 0.75
    assert Scale(1, 5, "higher").snap(3.01) == 3.0
    assert Scale(0, math.inf, "lower").snap(1.2345) == 1.2345
