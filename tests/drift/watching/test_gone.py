"""Series that nobody watches any more, and series of which there is nothing left, stop nobody."""

from collections.abc import Iterator

import numpy as np
import pytest

from drift.settings import DriftSettings
from sinks.clickhouse.database import Database
from tests.drift.watching.planted import BASE, DAY, START, Planted, WindowRow, window

SECONDS, LATENCY = "speed.seconds", "operations.latency_seconds"  # of one batch
FIRST = START + 2 * DAY


def windows(metric: str, first: int, end: int) -> Iterator[WindowRow]:
    for at in range(first, end, BASE):
        yield window(metric, at, np.random.default_rng(at - START).normal(0.8, 0.1, 40).clip(0, 1), version=0)


@pytest.mark.clickhouse
def test_a_metric_that_settings_take_away_is_let_go(database: Database) -> None:
    """Also from states that are gone back to for late windows."""
    planted, now = Planted(database), FIRST + 3600
    for metric in (SECONDS, LATENCY):
        planted.store(windows(metric, FIRST - DAY // 8, now))
    planted.look(FIRST)
    assert planted.look(now).series == 2
    planted.settings = DriftSettings(history_days=2, ignore=(LATENCY,))
    planted.store(windows(SECONDS, now - 2 * BASE, now))
    looked = planted.look(now + BASE)
    assert [series.metric for one in looked.seen for series in one.batch.series] == [SECONDS]
    assert looked.late == 2


@pytest.mark.clickhouse
def test_days_without_a_record_and_without_a_look_are_worked_off(database: Database) -> None:
    """Once a day, all that is learned from, has no record, the series goes; a day later there is none to learn."""
    planted, later = Planted(database), FIRST + 2 * DAY + BASE
    planted.settings = planted.settings.model_copy(update={"history_days": 1})
    planted.store(windows(SECONDS, FIRST - DAY // 4, FIRST - DAY // 8))
    assert planted.look(FIRST).series == 1
    assert planted.look(later).series == 0
    planted.store(windows(SECONDS, later, later + BASE))
    assert planted.look(later + BASE).series == 1
