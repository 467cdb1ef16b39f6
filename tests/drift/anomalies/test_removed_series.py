"""Series that nobody watches any more, and series of which there is nothing left, stop nobody."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ragtide.drift.detection_settings import AppDrift
from ragtide.drift.settings import DriftSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.anomalies.window_fixture import BASE, DAY, START, WindowFixture, WindowRow, window

SECONDS, LATENCY = "speed.seconds", "operations.latency_seconds"  # of one batch
FIRST = START + 2 * DAY


def windows(metric: str, first: int, end: int) -> Iterator[WindowRow]:
    for at in range(first, end, BASE):
        yield window(metric, at, np.random.default_rng(at - START).normal(0.8, 0.1, 40).clip(0, 1), version=0)


@pytest.mark.clickhouse
@pytest.mark.parametrize("said", [{"ignore": (LATENCY,)}, {"apps": {"shop": AppDrift(ignore=(LATENCY,))}}], ids=str)
def test_a_metric_that_settings_take_away_is_let_go(database: Database, said: dict[str, Any]) -> None:
    """Also from states that are gone back to for late windows."""
    planted, now = WindowFixture(database), FIRST + 3600
    for metric in (SECONDS, LATENCY):
        planted.store(windows(metric, FIRST - DAY // 8, now))
    planted.scan(FIRST)
    assert planted.scan(now).series == 2
    planted.settings = DriftSettings(history_days=2, **said)
    planted.store(windows(SECONDS, now - 2 * BASE, now))
    looked = planted.scan(now + BASE)
    assert [series.metric for one in looked.snapshots for series in one.batch.series] == [SECONDS]
    assert looked.reprocessed == 2
    planted.settings = planted.settings.model_copy(update={"enabled": False})
    assert planted.scan(now + 2 * BASE).series == 0


@pytest.mark.clickhouse
def test_days_without_a_record_and_without_a_look_are_worked_off(database: Database) -> None:
    """Once a day, all that is learned from, has no record, the series goes; a day later there is none to learn."""
    planted, later = WindowFixture(database), FIRST + 2 * DAY + BASE
    planted.settings = planted.settings.model_copy(update={"history_days": 1})
    planted.store(windows(SECONDS, FIRST - DAY // 4, FIRST - DAY // 8))
    assert planted.scan(FIRST).series == 1
    assert planted.scan(later).series == 0
    planted.store(windows(SECONDS, later, later + BASE))
    assert planted.scan(later + BASE).series == 1


@pytest.mark.clickhouse
def test_what_is_nobodys_business_is_more_for_one_app_than_for_another(database: Database) -> None:
    """A twentieth of the range is five times the margin, and half of what app lax says is nothing."""
    planted = WindowFixture(database, settings=DriftSettings(history_days=2, apps={"lax": AppDrift(margin=10)}))
    rows = []
    for at in range(START, FIRST + 3600, BASE):
        values = np.random.default_rng(at).normal(0.8 if at < FIRST else 0.75, 0.02, 40)
        rows += [window("quality.good", at, values, version=0, app=app) for app in ("lax", "shop")]
    planted.store(rows)
    planted.scan(FIRST)
    looked = planted.scan(FIRST + 3600)
    assert {alarm.series.app for one in looked.snapshots for alarm in one.alarms()} == {"shop"}
    near = {
        series.app: float(one.baseline.tolerance[place, 0])
        for one in looked.snapshots
        for place, series in enumerate(one.batch.series)
    }
    assert near["lax"] == pytest.approx(10 * near["shop"])
