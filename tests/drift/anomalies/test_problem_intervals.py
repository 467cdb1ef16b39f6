"""What a baseline does not learn from: times of trouble, unless there is next to nothing else."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pytest

from ragtide.drift.anomalies.scanner import ScanResult
from ragtide.drift.problems.model import EventRow, problem_id
from ragtide.drift.problems.report import ProblemKey
from ragtide.sinks.clickhouse.database import Database
from tests.drift.anomalies.window_fixture import BASE, DAY, START, WindowFixture, WindowRow, window

METRIC = "quality.good"
BEGIN = START + DAY
NOW = BEGIN + 2 * DAY - 7200


def scores(app: str, first: int, end: int, mean: float) -> Iterator[WindowRow]:
    for at in range(first, end, BASE):
        values = np.random.default_rng(at - START).normal(mean, 0.1, 60).clip(0, 1)
        yield window(METRIC, at, values, version=0, app=app)


def opened(app: str, since: int) -> EventRow:
    """By a threshold, and nothing closed it."""
    at, place = datetime.fromtimestamp(since, UTC), ProblemKey(app, "prod", "m1", "level", METRIC)
    return EventRow(
        problem_id=problem_id(*place),
        event_id=app,
        event="opened",
        episode=1,
        at=at,
        **place._asdict(),
        kind="threshold",
        severity="critical",
        attributes=json.dumps({"since": at.isoformat()}),
    )


def levels(looked: ScanResult) -> dict[str, float]:
    """Of series that are watched, by app."""
    return {
        series.app: float(one.baseline.level[place, 0].mean())
        for one in looked.snapshots
        for place, series in enumerate(one.batch.series)
        if not one.baseline.warming[place]
    }


@pytest.mark.clickhouse
def test_trouble_is_no_example_unless_a_series_was_hardly_ever_without(database: Database) -> None:
    """0.6 is below the threshold: app `never` was above it for two hours at first, `lately` until eight hours ago."""
    planted, hours = WindowFixture(database), 2 * 3600
    planted.store(scores("never", BEGIN, BEGIN + hours, 0.8))
    planted.store(scores("never", BEGIN + hours, NOW, 0.6))
    planted.store(scores("lately", BEGIN, NOW - 4 * hours, 0.8))
    planted.store(scores("lately", NOW - 4 * hours, NOW, 0.6))
    database.insert("problem_events", [opened("never", BEGIN + hours), opened("lately", NOW - 4 * hours)])
    found = levels(planted.scan(NOW))
    assert found == {"never": pytest.approx(0.6, abs=0.01), "lately": pytest.approx(0.8, abs=0.01)}
    planted.store(scores("never", NOW, NOW + 3600, 0.3))
    looked = planted.scan(NOW + 3600)
    fell = {alarm.series.app: alarm for one in looked.snapshots for alarm in one.alarms()}
    assert fell["never"].expected == pytest.approx(0.6, abs=0.01)
    assert fell["never"].onset == NOW
