"""A statement that is too much for the server is cut or postponed; the roll-up goes on."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragtide.drift.leadership import Term
from ragtide.drift.settings import WindowSettings
from ragtide.drift.windows import dirty, watermark
from ragtide.drift.windows.moved_traces import tombstone_moved_traces
from ragtide.drift.windows.scope import Scope
from ragtide.drift.windows.watermark import Watermark
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.errors import TooMuch
from tests.drift.world import World, score_row

pytestmark = pytest.mark.clickhouse
HOUR = 3600


class TooLarge(Database):
    """The real database, where statements with this text exceed their time limit."""

    marker = ""
    failures = 0

    def rows(
        self, sql: str, parameters: Mapping[str, Any] | None = None, settings: Mapping[str, int] | None = None
    ) -> list[dict[str, Any]]:
        if self.marker and self.marker in sql:
            self.failures += 1
            raise TooMuch("the statement exceeded its time limit")
        return super().rows(sql, parameters, settings)


def hours(database: Database) -> list[int]:
    rows = database.rows("SELECT DISTINCT start FROM windows FINAL WHERE size_s = 3600 ORDER BY start")
    return [int(row["start"].timestamp()) for row in rows]


def test_larger_windows_of_a_long_backlog_are_marked_in_steps(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = (World(database).start - timedelta(days=3)).replace(hour=0)
    world = World(database, windows=WindowSettings(sizes_s=(HOUR,), out_of_orderness_s=0), start=start)
    for hour in (0, 1, 5, 26, 49):
        world.store([score_row(world.at(hour * HOUR), f"t{hour}", {"good": 0.1})])
    world.advance(60)
    mark, spans = dirty.mark_larger, []

    def marked(database: Database, term: Term, scope: Scope, smaller_s: int, lane: str) -> None:
        spans.append(scope.end - scope.first)
        if spans[-1] > 3 * HOUR:
            raise TooMuch("the statement exceeded its time limit")
        mark(database, term, scope, smaller_s, lane)

    monkeypatch.setattr(dirty, "mark_larger", marked)
    world.advance(50 * HOUR)
    assert hours(database) == [int(world.at(hour * HOUR).timestamp()) for hour in (0, 1, 5, 26, 49)]
    assert spans == [50 * HOUR, 25 * HOUR, 12 * HOUR, 6 * HOUR] + [3 * HOUR] * 16 + [2 * HOUR]


def test_a_lane_whose_watermark_was_in_1970_marks_in_one_statement(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there until the first record of a partition that lags is stored."""
    world = World(database, windows=WindowSettings(sizes_s=(HOUR,), out_of_orderness_s=0))
    watermark.store(database, {("fast", "rag.traces"): Watermark(datetime(1970, 1, 1, tzinfo=UTC), False)})
    world.store([score_row(world.at(0), "t", {"good": 0.1})])
    mark, calls = dirty.mark_larger, []

    def marked(*given: Any) -> None:
        calls.append(given)
        mark(*given)

    monkeypatch.setattr(dirty, "mark_larger", marked)
    world.advance(60)
    world.advance(HOUR)
    assert (hours(database), len(calls)) == ([int(world.at(0).timestamp())], 2)


def test_marks_that_fail_for_a_single_window_fail_the_run(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(database, windows=WindowSettings(sizes_s=(HOUR,), out_of_orderness_s=0))
    world.store([score_row(world.at(0), "t", {"good": 0.1})])
    world.advance(60)

    def refused(*_given: Any) -> None:
        raise TooMuch("the statement exceeded its time limit")

    monkeypatch.setattr(dirty, "mark_larger", refused)
    with pytest.raises(TooMuch):
        world.advance(HOUR)


def places(database: Database) -> Sequence[tuple[str, str]]:
    rows = database.rows("SELECT app, trace_id FROM traces FINAL ORDER BY app, trace_id")
    return [(row["app"], row["trace_id"]) for row in rows]


def test_moved_traces_nearby_are_found_where_the_search_of_all_days_is_too_large(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(database)
    for app, version in (("old", 1), ("new", 2)):
        world.store([score_row(world.at(0), "moved", {"good": 0.1}, app=app, version=version)])
    limited = TooLarge(database.settings)
    limited.marker = "WHERE 1 AND trace_id IN"
    now = world.at(HOUR)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "ragtide"):
        assert tombstone_moved_traces(limited, 60, now) == 1
    assert places(database) == [("new", "moved")]
    assert [record.message for record in caplog.records] == [
        "the search of all days for moved traces failed and will be retried in an hour: "
        "the statement exceeded its time limit"
    ]
    tombstone_moved_traces(limited, 60, now + timedelta(minutes=30))
    assert limited.failures == 1
    tombstone_moved_traces(limited, 60, now + timedelta(minutes=61))
    assert limited.failures == 2
    limited.close()


def test_values_of_a_segment_stay_where_the_query_for_new_ones_is_too_large(database: Database) -> None:
    world = World(database, windows=WindowSettings(out_of_orderness_s=0, segments={"tenant": ()}, segment_values=1))
    world.scores(0, [0.9] * 3, segments={"tenant": "a"}, name="a")
    world.advance(60)
    limited = TooLarge(database.settings)
    limited.marker = "row_number() OVER"
    world.database = limited
    world.elect()
    world.scores(86_400, [0.9] * 3, segments={"tenant": "b"}, name="b")
    assert world.advance(86_460).rollup.failed == 0
    assert limited.failures == 1
    rows = database.rows("SELECT values FROM segment_values FINAL ORDER BY holds_from")
    assert [row["values"] for row in rows] == [["a"], ["a"]]
    limited.close()
