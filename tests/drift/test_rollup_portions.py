"""One application, name or backlog never stops the windows of the others."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ragtide.drift.checks.job_health import RollupFailures
from ragtide.drift.settings import RuleSettings, WindowSettings
from ragtide.drift.windows.backoff import Application, RollupBackoff
from ragtide.drift.windows.rollup import Rollup
from ragtide.drift.windows.scope import WindowKey, batch_scopes
from ragtide.drift.windows.watermark import Idleness
from ragtide.evaluators.errors import Refused
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ScoreRow
from ragtide.sinks.settings import RetentionSettings
from tests.drift.test_rollup_states import pending
from tests.drift.windows_model import base_windows
from tests.drift.world import EVALUATORS, World, score_row, trace_row

pytestmark = pytest.mark.clickhouse
MINUTES = 60
NAMES: Mapping[str, Sequence[tuple[str, str]]] = {
    "one application of 60,000 characters": [("a" * 60_000, "prod")],
    "its neighbour by the last character": [("a" * 60_000, "prod"), ("a" * 59_999 + "b", "prod")],
    "100 applications of 300 characters": [(f"{i:03d}" * 100, "prod") for i in range(100)],
    "an environment of 300,000 characters": [("long", "'\\é" * 100_000)],
    "100 applications of 4-byte characters": [("\N{SLICE OF PIZZA}" * 128 + f"{i}", "prod") for i in range(100)],
}


def rows_of(world: World, places: Sequence[tuple[str, str]], minutes: int = 1, each: int = 2) -> list[ScoreRow]:
    return [
        score_row(world.at(60 * minute + i), f"{p}-{minute}-{i}", {"good": 0.1}, app=app, environment=environment)
        for p, (app, environment) in enumerate(places)
        for minute in range(minutes)
        for i in range(each)
    ]


def scored(database: Database, size_s: int) -> dict[tuple[str, str], int]:
    rows = database.rows(
        "SELECT app, environment, sum(scored) AS n FROM windows FINAL "
        "WHERE size_s = {size_s:UInt32} AND metric = 'quality.good' GROUP BY ALL",
        {"size_s": size_s},
    )
    return {(row["app"], row["environment"]): row["n"] for row in rows}


@pytest.mark.parametrize("places", NAMES.values(), ids=NAMES.keys())
def test_names_of_any_length_and_number_have_windows(database: Database, places: Sequence[tuple[str, str]]) -> None:
    world = World(database)
    everybody = [*places, ("shop", "prod")]
    world.store(rows_of(world, everybody))
    world.advance(60)
    assert scored(database, 60) == dict.fromkeys(everybody, 2)
    world.store(rows_of(world, places, each=3))  # late rows
    assert world.advance(3600).rollup.failed == 0
    assert scored(database, 3600) == dict.fromkeys(places, 3) | {("shop", "prod"): 2}
    assert pending(database) == 0


def test_problems_of_long_names_open_beside_those_of_others(database: Database) -> None:
    world = World(database, rules=RuleSettings(min_sample=5, k=1, m=1))
    places = [("a" * 60_000, "prod"), ("shop", "b" * 300_000), ("shop", "prod")]
    world.store(rows_of(world, places, minutes=2, each=10))
    world.advance(120)
    assert sorted((one.app, one.environment) for one in world.open()) == sorted(places)
    world.advance(200)


@pytest.mark.parametrize("characters", [10, 100, 10_000, 1_000_000])
def test_what_a_statement_names_is_bounded(characters: int) -> None:
    windows = [WindowKey("live", f"{i}".ljust(characters, "x"), "prod", 60 * (i % 3)) for i in range(500)]
    scopes = list(batch_scopes(windows, 60, ()))
    assert sorted(one for scope in scopes for one in scope.windows) == sorted(windows)
    assert max(len(scope.rows_condition("start")) for scope in scopes) < 65_536


def test_an_application_whose_windows_fail_waits_and_the_others_go_on(database: Database) -> None:
    world = World(database)
    pace, good = world.jobs.pace, [("shop", "prod"), ("docs", "prod")]
    world.store(rows_of(world, [*good, ("bad", "prod")], minutes=2))
    database.command("ALTER TABLE windows ADD CONSTRAINT refused CHECK app != 'bad'")
    assert world.advance(60).rollup.failed == 1
    assert scored(database, 60) == dict.fromkeys(good, 2)
    report = world.advance(119)
    assert (report.rollup.failed, report.rollup.marks) == (0, 0), "it waits a minute"
    assert told(world, 119) == []
    assert world.advance(121).rollup.failed == 1
    assert scored(database, 60) == dict.fromkeys(good, 4)
    failing = pace.failing()[Application("bad", "prod")]
    assert world.advance(3600).rollup.failed == 1
    assert scored(database, 3600) == dict.fromkeys(good, 4)
    assert told(world, 3600) == ["opened bad watch"]
    (problem,) = [one for one in world.open() if one.aspect == "jobs"]
    assert "failed 2 times to store a window of bad (prod)" in problem.description
    assert "VIOLATED_CONSTRAINT" in problem.description
    assert failing.attempts <= 2
    database.command("ALTER TABLE windows DROP CONSTRAINT refused")
    assert told(world, 3700) == []
    world.advance(4300)
    assert scored(database, 60) == scored(database, 3600) == {**dict.fromkeys(good, 4), ("bad", "prod"): 4}
    assert pending(database) == 0
    assert told(world, 4300) == ["resolved bad watch"]


def test_however_many_applications_fail_the_others_have_windows_in_the_same_run(database: Database) -> None:
    world = World(database)
    bad = [(f"bad{number:02d}", "prod") for number in range(12)]
    world.store(rows_of(world, [*bad, ("shop", "prod")]))
    database.command("ALTER TABLE windows ADD CONSTRAINT refused CHECK NOT startsWith(app, 'bad')")
    assert world.advance(60).rollup.failed == len(bad)
    assert scored(database, 60) == {("shop", "prod"): 2}
    world.advance(125)  # all that waited are tried again, and nothing else is ready
    assert pending(database) == len(bad)


def test_a_run_in_which_no_application_works_fails(database: Database) -> None:
    world = World(database)
    world.store(rows_of(world, [("shop", "prod"), ("docs", "prod")]))
    database.command("ALTER TABLE windows ADD CONSTRAINT refused CHECK app = ''")
    with pytest.raises(Refused, match="VIOLATED_CONSTRAINT"):
        world.advance(60)
    database.command("ALTER TABLE windows DROP CONSTRAINT refused")
    world.advance(121)
    assert scored(database, 60) == {("shop", "prod"): 2, ("docs", "prod"): 2}


def told(world: World, second: float) -> list[str]:
    watched = world.check(RollupFailures(world.jobs.pace), world.at(second))
    return [f"{event.event} {event.app} {event.segment_value}" for event in watched.events]


def test_a_failing_window_keeps_only_itself_from_being_stored(database: Database) -> None:
    world = World(database)
    world.store(rows_of(world, [("shop", "prod")], minutes=5))
    at = f"{world.at(60):%Y-%m-%d %H:%M:%S}"
    database.command(f"ALTER TABLE windows ADD CONSTRAINT refused CHECK start != toDateTime('{at}', 'UTC')")
    for second in (300, 400, 600, 900, 1600):
        world.advance(second)
    assert scored(database, 60) == {("shop", "prod"): 8}
    assert pending(database) == 1


def slow_rollup(database: Database, world: World, pace: RollupBackoff | None = None) -> Rollup:
    return Rollup(
        database, EVALUATORS, world.windows, world.term, Idleness(), RetentionSettings(), *([pace] if pace else [])
    )


def test_a_backlog_that_no_single_statement_can_store_is_stored(database: Database) -> None:
    """Each row takes 50 ms to store, so that 20 windows take the two seconds that a statement has."""
    world = World(database, windows=WindowSettings(sizes_s=(3600,), out_of_orderness_s=0))
    rows = rows_of(world, [("shop", "prod")], minutes=MINUTES)
    world.store(rows)
    database.command("CREATE TABLE slept (s UInt8) ENGINE = Null")
    database.command("CREATE MATERIALIZED VIEW slow TO slept AS SELECT sleepEachRow(0.05) AS s FROM windows")
    world.progress(3600)
    hasty = Database(database.settings.model_copy(update={"timeout_s": 2}))
    rollup = slow_rollup(hasty, world)
    report = rollup.run(world.at(3600))
    assert (report.failed, report.waiting, pending(database)) == (0, 0, 0)
    for size_s in (60, 3600):
        expected = base_windows(rows, [trace_row(row) for row in rows], EVALUATORS, {}, size_s)
        found = database.rows(
            "SELECT toUnixTimestamp(start) AS at, metric, seen, scored FROM windows FINAL "
            "WHERE size_s = {size_s:UInt32} ORDER BY metric, at",
            {"size_s": size_s},
        )
        wanted = sorted((key.metric, key.start, content.seen, content.scored) for key, content in expected.items())
        assert [(row["metric"], row["at"], row["seen"], row["scored"]) for row in found] == wanted
    assert rollup.backoff.batch_size < MINUTES
    hasty.close()


def test_portions_that_are_stored_are_not_worked_off_again(database: Database) -> None:
    world = World(database)
    world.store(rows_of(world, [("shop", "prod")], minutes=MINUTES))
    world.progress(3600)

    class Killed(Database):
        left = 3

        def command(self, sql: str, *given: Any, **named: Any) -> None:
            self.left -= "INSERT INTO windows" in sql
            if self.left < 0:
                raise KeyboardInterrupt
            super().command(sql, *given, **named)

    dying = Killed(database.settings)
    with pytest.raises(KeyboardInterrupt):
        slow_rollup(dying, world, RollupBackoff(batch_size=20)).run(world.at(3600))
    dying.close()
    assert 0 < pending(database) < MINUTES
    left = pending(database)
    report = slow_rollup(database, world).run(world.at(3601))
    assert report.windows == left
    assert scored(database, 60) == {("shop", "prod"): 2 * MINUTES}
    assert scored(database, 3600) == {("shop", "prod"): 2 * MINUTES}
