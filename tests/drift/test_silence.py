"""An app that used to send traces has stopped."""

import pytest

from drift.settings import JobSettings, RuleSettings
from drift.silence import Habit
from sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS, QUALITY, World, made, score_row, trace_row

RULES = RuleSettings(missing_after_s=300, flap_s=0)
OFTEN = JobSettings(reconcile_every_s=0.001)
OPERATIONS = made("operations", [*QUALITY.metrics])


def test_a_habit_is_broken_after_twice_its_longest_pause() -> None:
    steady = Habit("shop", "", 100, windows=4, last=180, pause=60)
    assert not steady.is_broken(240 + 899, 60, 900)
    assert steady.is_broken(240 + 900, 60, 900)
    nightly = Habit("shop", "", 100, windows=3, last=10_000, pause=9_940)
    assert not nightly.is_broken(10_060 + 19_879, 60, 900)
    assert nightly.is_broken(10_060 + 19_880, 60, 900)
    assert not Habit("shop", "", 2, windows=2, last=60, pause=60).is_broken(100_000, 60, 900)


@pytest.mark.clickhouse
@pytest.mark.parametrize("evaluator", ["quality", "operations"])
def test_silence_opens_once_and_ends_with_the_next_trace(database: Database, evaluator: str) -> None:
    known = EVALUATORS | {"operations": OPERATIONS}
    world = World(database, rules=RULES, settings=OFTEN, evaluators=known)
    for minute in range(4):
        world.scores(minute * 60, [0.9], evaluator=evaluator)
        world.scores(minute * 60, [0.9], evaluator=evaluator, app="other")
    world.advance(240)
    world.scores(539, [0.9], evaluator=evaluator, app="other")
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
    assert problem.attributes["sample_size"] == 4
    world.watch(2000)  # the worker stands still, and so does the watermark: "other" is not silent
    assert len(world.problems()) == 1
    world.scores(2000, [0.9], evaluator=evaluator)
    world.advance(2001)
    assert {(p.app, p.state) for p in world.problems()} >= {("shop", "resolved")}


@pytest.mark.clickhouse
def test_a_change_of_fingerprint_counts_no_trace_twice(database: Database) -> None:
    world = World(database, rules=RULES, settings=OFTEN)
    for minute in range(3):
        rows = [score_row(world.at(minute * 60), f"t{minute}", {"good": 0.9}, fingerprint=f) for f in ("f1", "f2")]
        rows[1] = rows[1]._replace(evaluator="checked", metrics={"passes": 1.0})
        world.store(rows)
    world.advance(600)
    (problem,) = world.problems()
    assert problem.attributes["sample_size"] == 3


@pytest.mark.clickhouse
def test_traces_that_no_evaluator_looked_at_are_no_silence(database: Database) -> None:
    world = World(database, rules=RULES, settings=OFTEN)
    for minute in range(3):
        world.scores(minute * 60, [0.9])
    database.insert("traces", [trace_row(score_row(world.at(400), "unseen"))])
    world.advance(600)
    assert world.problems() == []
    world.advance(760)
    assert world.problems() == []
