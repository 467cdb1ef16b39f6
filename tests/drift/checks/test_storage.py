"""Disks that are nearly full and dead letters that are more than usual are problems until there is room, or fewer."""

from datetime import datetime
from typing import Any, NamedTuple

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from ragtide.drift.checks.dead_letters import DeadLetters
from ragtide.drift.checks.disks import Disks
from ragtide.drift.settings import RuleSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.errors import classify_error
from tests.drift.world import World

pytestmark = pytest.mark.clickhouse
HOUR = 3600
ROOM = RuleSettings(disk_limit=1.0, dead_letters=20, update_every_s=0)


class Letter(NamedTuple):
    run_id: str
    topic: str
    partition: int
    offset: int
    time: datetime
    reason: str
    ingested_at: datetime


def letters(
    world: World, second: float, count: int, reason: str = "not_json", *, first: int, run: str = "live"
) -> None:
    at = world.at(second)
    rows = [Letter(run, "rag.traces", 0, first + i, at, reason, at) for i in range(count)]
    world.database.insert("dead_letters", rows)


def run_check(world: World, second: float, rules: RuleSettings = ROOM) -> list[str]:
    now = world.at(second)
    disks, letters = (world.check(check, now, rules) for check in (Disks(), DeadLetters()))
    assert disks.read > 0
    return [f"{event.event} {event.segment} {event.segment_value}" for event in (*disks.events, *letters.events)]


def test_a_disk_that_is_nearly_full_is_a_problem_until_there_is_room(database: Database) -> None:
    world = World(database)

    def allowed(more: float) -> RuleSettings:
        """So much more than is used now, whatever others write meanwhile."""
        (disk,) = database.rows("SELECT 1 - free_space / total_space AS used FROM system.disks WHERE total_space > 0")
        return ROOM.model_copy(update={"disk_limit": disk["used"] + more})

    (name,) = (row["name"] for row in database.rows("SELECT name FROM system.disks WHERE total_space > 0"))
    assert run_check(world, 0) == []
    full = allowed(-0.01)
    assert run_check(world, 0, full) == [f"opened disk {name}"]
    (problem,) = world.open()
    assert (problem.type, problem.code, problem.aspect, problem.app) == ("storage", "P0203 Scaling", "storage", "")
    assert problem.attributes["value"] == pytest.approx(full.disk_limit + 0.01, abs=0.005)
    assert f"Disk {name} of ClickHouse is" in problem.description
    assert "Give the disk more room" in problem.actions[0]
    assert run_check(world, 1, allowed(0.015)) == [], "hardly any room"
    assert run_check(world, 2, allowed(0.1)) == [f"resolved disk {name}"]


class WithoutTheRight(Database):
    """As a server answers whose user was granted nothing but its own database."""

    def rows(self, sql: str, *args: Any, **more: Any) -> list[dict[str, Any]]:
        if "system.disks" in sql:
            said = "Code: 497. DB::Exception: ragtide: Not enough privileges. (ACCESS_DENIED)"
            raise classify_error(DatabaseError(said, code=497), self.settings.url) or AssertionError
        return super().rows(sql, *args, **more)


def test_who_may_not_read_disks_is_told_of_dead_letters(database: Database) -> None:
    world = World(database)
    letters(world, 0, 40, first=0)
    unprivileged = WithoutTheRight(database.settings)
    with pytest.raises(ConfigError, match=r"fills up until .*: GRANT SELECT ON system\.disks TO .*Not enough priv"):
        world.check(Disks(), world.at(0), ROOM, database=unprivileged)
    read, (event,) = world.check(DeadLetters(), world.at(0), ROOM, database=unprivileged)
    assert read == 40
    assert (event.event, event.segment) == ("opened", "dead_letters")
    unprivileged.close()


def test_more_dead_letters_than_usual_are_a_problem_until_they_are_few(database: Database) -> None:
    world = World(database)
    letters(world, -2 * HOUR, 1680, first=0)  # 10 an hour of the week before: 30 are too many
    letters(world, -60, 29, first=10_000)
    letters(world, -60, 500, first=0, run="replay")
    assert run_check(world, 0) == []
    letters(world, 0, 6, "too_old", first=20_000)
    assert run_check(world, 0) == ["opened dead_letters rag.traces"]
    world.elect()
    assert run_check(world, 0) == []
    (problem,) = world.open()
    assert "35 records of topic rag.traces became dead letters in the last hour (usually 10), " in problem.description
    assert problem.description.endswith(" Reasons: not_json 29, too_old 6.")
    assert "ragtide dead-letters list" in problem.actions[0]
    letters(world, HOUR, 20, first=30_000)
    assert run_check(world, HOUR + 60) == [], "more than half as many as are too many"
    assert run_check(world, 3 * HOUR) == ["resolved dead_letters rag.traces"]
