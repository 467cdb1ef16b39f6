"""An app that used to send traces has stopped."""

import pytest

from drift.settings import JobSettings, RuleSettings
from drift.silence import Habit
from sinks.clickhouse.database import Database
from tests.drift.world import World


def test_a_habit_is_broken_after_twice_its_longest_pause() -> None:
    steady = Habit("shop", "", 100, (0, 60, 120, 180))
    assert not steady.is_broken(240 + 899, 60, 900)
    assert steady.is_broken(240 + 900, 60, 900)
    nightly = Habit("shop", "", 100, (0, 60, 10_000))
    assert not nightly.is_broken(10_060 + 19_879, 60, 900)
    assert nightly.is_broken(10_060 + 19_880, 60, 900)
    assert not Habit("shop", "", 2, (0, 60)).is_broken(100_000, 60, 900)


@pytest.mark.clickhouse
def test_silence_opens_once_and_ends_with_the_next_trace(database: Database) -> None:
    rules = RuleSettings(missing_after_s=300, flap_s=0)
    world = World(database, rules=rules, settings=JobSettings(reconcile_every_s=0.001))
    for minute in range(4):
        world.scores(minute * 60, [0.9])
        world.scores(minute * 60, [0.9], app="other")
    world.advance(240)
    world.scores(539, [0.9], app="other")
    world.advance(539)
    assert world.problems() == []
    for second in (540, 541):
        world.advance(second)
        (problem,) = world.problems()
        assert (problem.app, problem.aspect, problem.kinds, problem.state) == (
            "shop",
            "missing",
            ("missing_data",),
            "open",
        )
    assert problem.attributes["since"] == world.at(240).isoformat()
    world.watch(2000)  # the worker stands still, and so does the watermark: "other" is not silent
    assert len(world.problems()) == 1
    world.scores(2000, [0.9])
    world.advance(2001)
    assert {(p.app, p.state) for p in world.problems()} >= {("shop", "resolved")}
