"""Detectors follow the clock of an application, and leave out its known events and holidays."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from ragtide.drift.anomalies.known_times import KnownTimes
from ragtide.drift.anomalies.queries import TickRange
from ragtide.drift.rules import Series
from ragtide.drift.settings import DriftSettings
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.anomalies.window_fixture import BASE, DAY, WindowFixture, WindowRow, window
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse

HOUR = 3600
BERLIN = ZoneInfo("Europe/Berlin")
CHANGE = round(datetime(2026, 3, 29, 1, tzinfo=UTC).timestamp())  # a Sunday: 2:00 becomes 3:00
BEGIN = CHANGE - 9 * DAY  # with a weekend before that of the change
Level = Callable[[datetime], float]


def by_day_and_night(local: datetime) -> float:
    return 0.8 if 8 <= local.hour < 20 else 0.5


def windows(first: int, end: int, level: Level) -> Iterator[WindowRow]:
    rng = np.random.default_rng(first)
    for at in range(first, end, BASE):
        values = np.clip(rng.normal(level(datetime.fromtimestamp(at, BERLIN)), 0.1, 40), 0, 1)
        yield window("quality.good", at, values, version=0)


def alarms(
    server: EmbeddedClickHouse, level: Level, first_scan: int, end: int, **settings: Any
) -> list[tuple[int, int]]:
    """When the series was in alarm; 0: it is at the end."""
    own = DriftSettings.model_validate({"history_days": 9, **settings})
    with fresh_database(server, windows_minute_days=100_000) as database:
        planted = WindowFixture(database, own)
        planted.store(windows(BEGIN, end, level))
        planted.scan(first_scan)
        found = planted.scan(end)
        return [(one.since, one.until) for snapshot in found.snapshots for one in snapshot.batch.alarm_intervals]


def test_incidents_move_with_the_cells_that_they_exclude() -> None:
    series = Series("shop", "prod", "quality.good", "m1", "", "")
    known = KnownTimes.of([series], DriftSettings(time_zone="Europe/Berlin"))
    ticks = TickRange(BASE, BASE, CHANGE - DAY, CHANGE + DAY)
    cells = np.array([(at,) for at in ticks.ticks], [("at", "<u4")])
    place = np.zeros(len(cells), np.int64)
    for now in (CHANGE - DAY, CHANGE + DAY):
        shifted = ticks.ticks + known.shifts(cells, place, ticks, now)
        assert shifted.tolist() == [known.moved(0, at, now) for at in ticks.ticks.tolist()]
    assert known.moved(0, CHANGE - 1, CHANGE + 1) == CHANGE - 1 - HOUR
    assert KnownTimes.of([series], DriftSettings()).moved(0, CHANGE - 1, CHANGE + 1) == CHANGE - 1


def test_a_change_of_clocks_is_no_change(clickhouse_server: EmbeddedClickHouse) -> None:
    times = (CHANGE - HOUR, CHANGE + 20 * HOUR)
    assert alarms(clickhouse_server, by_day_and_night, *times), "hours of UTC are others than those of users"
    assert alarms(clickhouse_server, by_day_and_night, *times, time_zone="Europe/Berlin") == []


def test_a_fault_after_a_change_of_clocks_is_found(clickhouse_server: EmbeddedClickHouse) -> None:
    fault = CHANGE + 9 * HOUR

    def falls(local: datetime) -> float:
        return by_day_and_night(local) - (0.2 if local.timestamp() >= fault else 0.0)

    [(since, until)] = alarms(clickhouse_server, falls, CHANGE - HOUR, fault + 2 * HOUR, time_zone="Europe/Berlin")
    assert abs(since - fault) <= 2 * BASE
    assert until == 0


def test_a_known_event_is_not_judged(clickhouse_server: EmbeddedClickHouse) -> None:
    def loaded(local: datetime) -> float:
        new_job = local.timestamp() >= CHANGE - DAY and local.hour == 4
        return 0.2 if new_job else 0.7

    times = (CHANGE - DAY, CHANGE + 3 * HOUR)
    load = {"name": "nightly load", "app": "sh*", "start": "04:00", "end": "05:00"}
    berlin: dict[str, Any] = {"time_zone": "Europe/Berlin"}
    assert alarms(clickhouse_server, loaded, *times, **berlin)
    assert alarms(clickhouse_server, loaded, *times, **berlin, calendar=[load]) == []
    assert alarms(clickhouse_server, loaded, *times, **berlin, calendar=[{**load, "app": "other"}])


def test_baselines_are_not_learned_from_known_events(clickhouse_server: EmbeddedClickHouse) -> None:
    """After a day without detection the level is that of other days."""

    def bad_day(local: datetime) -> float:
        return 0.3 if (local.month, local.day) == (3, 27) else 0.7

    def worse_now(local: datetime) -> float:
        return 0.3 if local.timestamp() >= CHANGE + HOUR else bad_day(local)

    left_out: dict[str, Any] = {"time_zone": "Europe/Berlin", "dates": ["2026-03-27"]}
    assert alarms(clickhouse_server, bad_day, CHANGE - 2 * DAY, CHANGE, **left_out) == []
    [(since, _)] = alarms(clickhouse_server, worse_now, CHANGE - HOUR, CHANGE + 2 * HOUR, **left_out)
    assert abs(since - CHANGE - HOUR) <= 2 * BASE
