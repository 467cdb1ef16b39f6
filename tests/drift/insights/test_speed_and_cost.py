"""Quantiles and costs with intervals, against ranks and sums worked by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom

from ragtide.drift.insights.speed_and_cost import (
    Costs,
    Estimate,
    confidence_of_each,
    cost_per_good,
    find_extremes,
)
from ragtide.drift.stats.proportions import Interval
from ragtide.drift.windows.histogram import Scale, quantile

SECONDS = Scale(0.0, math.inf, "lower")


def estimate(name: str, low: float, value: float, high: float) -> Estimate:
    return Estimate(name, 100, value, Interval(low, high))


def test_the_medians_interval_stands_at_the_ranks_of_the_binomial() -> None:
    """Of 100 values the 40th and the 61st hold the median with 95 % (Conover 1999, table of the sign test)."""
    values = [1.1**i for i in range(1, 101)]
    told = quantile(Counter(map(SECONDS.bin, values)), 0.5, 0.95)
    assert told is not None
    value, interval = told
    assert value == pytest.approx(values[49], rel=0.01)
    assert interval.low == pytest.approx(values[39], rel=0.01)
    assert interval.low <= values[39]
    assert interval.high == pytest.approx(values[60], rel=0.01)
    assert interval.high >= values[60]
    assert binom.cdf(60, 100, 0.5) - binom.cdf(39, 100, 0.5) >= 0.95


def test_too_few_values_have_no_interval() -> None:
    assert quantile({100_000: 5}, 0.5, 0.95) is None
    assert quantile({100_000: 50}, 0.95, 0.95) is None


def test_quantiles_hold_as_often_as_they_say() -> None:
    """Of 400 samples of 200 lognormal latencies; a 95th percentile that is known."""
    rng = np.random.default_rng(3)
    true = math.exp(1.6448536269514722)
    held = 0
    for _ in range(400):
        told = quantile(Counter(SECONDS.bin(value) for value in np.exp(rng.standard_normal(200))), 0.95, 0.95)
        assert told is not None
        held += told[1].low <= true <= told[1].high
    assert held >= 370


def test_what_an_answer_costs_has_the_bad_ones_costs_in_it() -> None:
    """Costs 1, 2, 3, 4, of which the last came to nothing: 10 for 3 answers. Residuals cost - ratio * good are
    1 - 10/3, 2 - 10/3, 3 - 10/3 and 4: squares 49/9, 16/9, 1/9 and 16, together 70/3.
    """
    told = cost_per_good(Costs(4, 3, 10.0, 30.0, 6.0), 0.95)
    assert told is not None
    value, interval = told
    assert value == pytest.approx(10 / 3)
    error = math.sqrt(70 / 3 * 4 / 3) / 10
    assert interval.high == pytest.approx(value * math.exp(1.959964 * error))
    assert interval.low == pytest.approx(value * math.exp(-1.959964 * error))


@pytest.mark.parametrize("costs", [Costs(0, 0, 0.0, 0.0, 0.0), Costs(9, 9, 0.0, 0.0, 0.0), Costs(9, 0, 4.0, 2.0, 0.0)])
def test_where_all_is_free_or_nothing_good_there_is_no_price(costs: Costs) -> None:
    assert cost_per_good(costs, 0.95) is None


def test_only_what_lies_apart_by_more_than_the_margin_is_told() -> None:
    slow, fast, middle = estimate("slow", 1.9, 2.0, 2.2), estimate("fast", 0.9, 1.0, 1.1), estimate("m", 0.9, 1.5, 2.9)
    told = find_extremes([slow, fast, middle])
    assert told is not None
    assert (told.lowest.name, told.highest.name, told.compared) == ("fast", "slow", 3)
    assert told.ratio == pytest.approx((1.9 / 1.1, 2.2 / 0.9))
    assert find_extremes([fast, estimate("b", 1.2, 1.3, 1.4)]) is None  # 1.2 is less than 1.1 times 1.1
    assert find_extremes([slow]) is None
    assert find_extremes([slow, estimate("free", 0.0, 0.1, 0.2)]) is None
    assert confidence_of_each(2) == pytest.approx(0.975)
