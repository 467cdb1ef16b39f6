"""Shares of sampled judges: by hand, by simulated worlds, and from the parts of rows."""

from collections.abc import Mapping

import numpy as np
import pytest

from ragtide.drift.stats import Interval
from ragtide.drift.windows import MetricRef, weight_parts, weighted_share
from ragtide.evaluators.prediction_powered import add_sums
from ragtide.evaluators.spec import Metric
from tests.drift.world import made

GOOD = Metric("good", threshold=0.5, primary=True)
RATED = made("rated", [GOOD])
REF = MetricRef(RATED, GOOD)
WORLDS = 2_000


def bad(bins: Mapping[int, float]) -> float:
    return REF.scale.below(bins, 0.5)


def test_by_hand() -> None:
    """One bad record that stands for ten traces, and three good ones for two each: 10 of 16."""
    rows = [weight_parts(GOOD, 0.2, 10.0), *[weight_parts(GOOD, 0.9, 2.0)] * 3]
    found = weighted_share(REF, add_sums(rows), 4, bad)
    assert found is not None
    assert found.value == pytest.approx(10 / 16)
    assert 0 < found.interval.low < found.value < found.interval.high < 1


def test_equal_weights_and_none_are_left_to_counts() -> None:
    rows = [weight_parts(GOOD, score, 20.0) for score in (0.1, 0.2, 0.9)]
    assert weighted_share(REF, add_sums(rows), 3, bad) is None
    assert weighted_share(REF, {"ppi.good.n": 3.0}, 3, bad) is None
    other = [weight_parts(Metric("better"), 0.1, 1.0), weight_parts(Metric("better"), 0.1, 9.0)]
    assert weighted_share(REF, add_sums(other), 2, bad) is None


def test_where_all_records_are_bad_the_interval_ends_at_one() -> None:
    rows = [weight_parts(GOOD, 0.1, weight) for weight in (1.0, 5.0, 5.0)]
    found = weighted_share(REF, add_sums(rows), 3, bad)
    assert found is not None
    assert (found.value, found.interval.high) == (1.0, 1.0)
    assert found.interval.low < 0.2, "of 1.4 degrees of freedom"


def test_a_share_that_one_heavy_record_decides_may_be_any() -> None:
    rows = [weight_parts(GOOD, 0.2, 100.0), *[weight_parts(GOOD, 0.9, 1.0)] * 29]
    found = weighted_share(REF, add_sums(rows), 30, bad)
    assert found is not None
    assert found.value == pytest.approx(100 / 129)
    assert found.interval == Interval(0.0, 1.0)
    assert found.freedom == pytest.approx(129**2 / 10_029 - 1)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_95_percent_of_the_intervals_hold_the_share_of_all_traces(share: float) -> None:
    """Bad traces are judged four times as often as good ones, which a cheap score tells apart in part."""
    rng = np.random.default_rng(2)
    held, raw = 0, 0.0
    for _ in range(WORLDS):
        is_bad = rng.random(3_000) < share
        looks_bad = rng.random(3_000) < np.where(is_bad, 0.7, 0.1)
        probability = np.where(looks_bad, 0.2, 0.05)
        judged = rng.random(3_000) < probability
        parts: dict[str, float] = {}
        for score, flag in ((0.2, True), (0.9, False)):
            for one in (0.2, 0.05):
                count = int((judged & (is_bad == flag) & (probability == one)).sum())
                for name, value in weight_parts(GOOD, score, 1 / one).items():
                    parts[name] = parts.get(name, 0.0) + count * value
        found = weighted_share(REF, parts, int(judged.sum()), bad)
        assert found is not None
        held += found.interval.low <= share <= found.interval.high
        raw += is_bad[judged].mean() / WORLDS
    assert abs(held / WORLDS - 0.95) <= 0.015
    assert raw > 1.3 * share, "counts alone are biased"
