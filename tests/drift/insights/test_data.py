"""Sums of windows are those of the values, whether hours have closed or not; fingerprints do not mix."""

import pytest

from ragtide.drift.insights.data import Group, MetricTotals, merge, metric_totals
from ragtide.drift.insights.model import Period
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS, World

METRIC = metrics_by_name(EVALUATORS)["quality.good"]


@pytest.mark.clickhouse
def test_hours_and_the_minutes_after_them_count_once(database: Database) -> None:
    world = World(database)
    world.scores(10, [0.2, 0.4], name="a")
    world.scores(70, [1.0] * 5, name="b", fingerprint="f0", model="m9")
    world.scores(3_605, [0.6] * 6, name="c", prompt_version="p2")
    world.advance(3_720)
    sizes = database.rows("SELECT DISTINCT size_s FROM windows FINAL WHERE metric = 'quality.good'")
    assert {row["size_s"] for row in sizes} >= {60, 3_600}
    period = Period(world.at(0), world.at(7_200))
    found = metric_totals(database, [METRIC], world.windows, period)
    first, second = (Group("shop", "prod", "quality.good", "m1", version) for version in ("p1", "p2"))
    assert set(found) == {first, second}
    assert found[first].sample.n == 2
    assert found[first].sample.mean == pytest.approx(0.3)
    assert found[first].sample.variance == pytest.approx(0.02)
    assert (found[first].min, found[first].max, found[first].share) == (0.2, 0.4, None)
    (both,) = merge(found, prompt_version="").values()
    assert both.n == 8
    assert both.total == pytest.approx(4.2)
    early = metric_totals(database, [METRIC], world.windows, Period(world.at(0), world.at(3_600)))
    assert {group.model for group in early} == {"m9"}  # of that hour most records have this fingerprint


def test_zeros_and_ones_are_a_share() -> None:
    assert MetricTotals(3, 2.0, 2.0, 0.0, 1.0).share == (2, 3)
    assert MetricTotals(2, 1.0, 0.5, 0.5, 0.5).share is None
    assert MetricTotals(2, 2.0, 2.0, -1.0, 1.5).share is None
