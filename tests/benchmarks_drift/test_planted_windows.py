"""Windows that a benchmark plants hold what the roll-up's would: the value of each record in one bin."""

import time

import pytest

from benchmarks.drift_job import BASE_S, plant
from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.evaluators import registry
from ragtide.sinks.clickhouse.database import Database

pytestmark = pytest.mark.clickhouse


def test_a_planted_window_has_as_many_values_as_records(database: Database) -> None:
    """With more, job `failure_rates` would see more failing records than there are."""
    found = {one.kind: one for one in monitored_metrics(registry.load().values()).values() if one.kind != "category"}
    first = (int(time.time()) // BASE_S - 100) * BASE_S  # windows that are older than their retention are not kept
    plant(database, {watch: [0, 1] for watch in found.values()}, first, 100, 1)
    rows = database.rows(
        "SELECT evaluator, countIf(arraySum(mapValues(bins)) != scored) AS wrong, count() AS n FROM windows "
        "GROUP BY evaluator"
    )
    assert sum(row["n"] for row in rows) == 200 * len(found)
    assert [row["evaluator"] for row in rows if row["wrong"]] == []
