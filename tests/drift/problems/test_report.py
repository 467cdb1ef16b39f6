"""What jobs tell through the one door, and rules beside them, on the real engine."""

from collections.abc import Sequence
from threading import Thread

import pytest

from ragtide.drift.problems.kinds import Kind
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.operator_actions import accept, acceptances
from ragtide.drift.problems.report import (
    Clear,
    Detection,
    ProblemKey,
    build_details,
    open_detections,
    report_detections,
)
from ragtide.drift.problems.store import load_events
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.sinks.clickhouse.database import Database, Row
from tests.drift.world import EVALUATORS, World, dies_before

pytestmark = pytest.mark.clickhouse
RULES = RuleSettings(min_sample=10, k=1, m=1, resolve_after=1, update_every_s=120)
KEY = ProblemKey("shop", "prod", "m1", "level", "quality.good")
METRIC = metrics_by_name(EVALUATORS)["quality.good"]


def detection(world: World, until: float, kind: Kind = "drift", bad: int = 30) -> Detection:
    attributes = {"value": 0.4, "baseline": 0.9}
    account = build_details(kind, KEY, METRIC, "it fell", attributes, world.rules, bad=bad, traffic=100)
    return Detection(KEY, account, world.at(0), world.at(until))


def report_at(world: World, second: float, *what: Detection | Clear) -> list[str]:
    return [event.event for event in report_detections(world.database, what, world.rules, world.term, world.at(second))]


def minute(world: World, number: int, value: float) -> None:
    world.scores(number * 60, [value] * 20)
    world.advance((number + 1) * 60)


def only(world: World) -> Problem:
    (problem,) = world.problems()
    return problem


def state(world: World) -> tuple[str, tuple[str, ...]]:
    return only(world).state, only(world).active_kinds


def test_jobs_that_open_one_problem_at_the_same_moment_are_both_heard(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, insert = World(database, rules=RULES), Database.insert
    other = Thread(target=report_at, args=(world, 60, detection(world, 60, "change_point")))

    def meanwhile(self: Database, table: str, rows: Sequence[Row]) -> None:
        if not other.ident:
            other.start()
            other.join(timeout=0.5)  # as long as it would need without a word with the first
        insert(self, table, rows)

    monkeypatch.setattr(Database, "insert", meanwhile)
    assert report_at(world, 60, detection(world, 60)) == ["opened"]
    other.join()
    assert (only(world).openings, set(only(world).active_kinds)) == (1, {"drift", "change_point"})
    assert [event.event for event in sorted(load_events(database), key=lambda one: one.at)] == ["opened", "kind_opened"]


def test_a_rule_and_a_detector_have_one_problem_that_ends_with_the_last(database: Database) -> None:
    world = World(database, rules=RULES)
    minute(world, 0, 0.4)
    assert report_at(world, 60, detection(world, 60)) == ["kind_opened"]
    minute(world, 1, 0.9)
    assert state(world) == ("open", ("drift",))
    assert open_detections(database, "drift").keys() == {KEY}
    assert open_detections(database, "threshold") == {}
    minute(world, 2, 0.4)
    assert state(world) == ("open", ("threshold", "drift"))
    assert report_at(world, 180, Clear(KEY, "drift", world.at(180))) == ["kind_cleared"]
    minute(world, 3, 0.9)
    assert state(world) == ("resolved", ())
    assert only(world).openings == 1


def test_what_is_known_has_no_event_and_news_of_it_one_now_and_then(database: Database) -> None:
    world = World(database, rules=RULES)
    assert report_at(world, 60, Clear(KEY, "drift", world.at(60))) == []
    assert report_at(world, 60, detection(world, 60)) == ["opened"]
    assert report_at(world, 179, detection(world, 120)) == []
    assert report_at(world, 180, detection(world, 60)) == []
    assert report_at(world, 180, detection(world, 120)) == ["updated"]
    assert only(world).attributes["until"] == world.at(120).isoformat()
    assert (only(world).type, only(world).code, only(world).severity) == ("accuracy", "P0102 Concept drift", "critical")
    assert "Ongoing Monitoring" in only(world).standards


def test_one_kind_may_end_where_another_begins(database: Database) -> None:
    world = World(database, rules=RULES)
    assert report_at(world, 60, detection(world, 60)) == ["opened"]
    both = (Clear(KEY, "drift", world.at(120)), detection(world, 120, "change_point"))
    assert report_at(world, 120, *both) == ["kind_opened", "kind_cleared"]
    assert report_at(world, 120, *both) == []
    assert state(world) == ("open", ("change_point",))


def test_a_crash_before_it_is_stored_loses_nothing_and_a_zombie_doubles_nothing(database: Database) -> None:
    world = World(database, rules=RULES)
    with dies_before("problem_events"):
        report_at(world, 60, detection(world, 60))
    assert report_at(world, 61, detection(world, 60)) == ["opened"]
    database.insert("problem_events", [row._replace(epoch=world.term.epoch - 1) for row in load_events(database)])
    assert database.rows("SELECT epoch FROM problem_events FINAL") == [{"epoch": world.term.epoch}]


def test_what_is_accepted_begins_when_the_detector_says_and_not_at_midnight(database: Database) -> None:
    """`drift` tells of a whole day: the hours before the change are no example of what is accepted."""
    world = World(database, rules=RULES)
    hour = 3600
    day, point = detection(world, 24 * hour), detection(world, 24 * hour, "change_point")
    assert report_at(world, 24 * hour, day, point._replace(since=world.at(20 * hour))) == ["opened", "kind_opened"]
    accept(database, only(world), "ada", world.at(24 * hour), "meant")
    assert [one.since for one in acceptances(database)] == [world.at(20 * hour)]
    assert only(world).state == "resolved"
