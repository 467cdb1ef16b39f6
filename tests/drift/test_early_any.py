"""A leak is a problem while its window is still open, once; what the window says when it closes takes its place."""

from typing import Any

import pytest

from ragtide.drift.settings import RuleOverride, RuleSettings, WindowSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World, dies_before, score_row

pytestmark = pytest.mark.clickhouse
RULES = RuleSettings(min_sample=10, k=1, m=1, update_every_s=0, any_resolve_after_s=120)


def events(database: Database) -> list[str]:
    return [row["event"] for row in database.rows("SELECT event FROM problem_events FINAL ORDER BY at, event_id")]


def verdicts(database: Database) -> list[tuple[Any, ...]]:
    rows = database.rows(
        "SELECT revision, samples, wrong, breached FROM verdicts FINAL "
        "WHERE startsWith(rule_id, 'any') AND samples > 0 ORDER BY start, segment"
    )
    return [tuple(row.values()) for row in rows]


def leak(world: World, second: float, values: list[float], **fields: Any) -> None:
    world.scores(second, values, evaluator="leak", key="passes", **fields)


def test_a_leak_opens_a_problem_before_its_window_closes_and_only_once(database: Database) -> None:
    world = World(database, rules=RULES)
    leak(world, 5, [1.0, 0.0, 1.0])
    world.advance(10)
    (problem,) = world.problems()
    assert (problem.state, problem.attributes["wrong"], problem.attributes["sample_size"]) == ("open", 1, 3)
    assert len(problem.examples) == 1
    stored = database.rows("SELECT count() AS n FROM verdicts")
    world.advance(11)
    world.elect()
    world.advance(12)
    assert events(database) == ["opened"]
    assert database.rows("SELECT count() AS n FROM verdicts") == stored
    leak(world, 20, [0.0, 1.0])
    world.advance(30)
    assert verdicts(database) == [(0, 5, 2, 1)]
    world.advance(60)  # it closes: the same numbers, in a verdict of its own
    assert verdicts(database) == [(1, 5, 2, 1)]
    assert events(database) == ["opened", "updated"]
    world.advance(61)
    assert events(database) == ["opened", "updated"]
    (problem,) = world.problems()
    assert (problem.openings, problem.attributes["wrong"], problem.attributes["sample_size"]) == (1, 2, 5)


def test_a_revision_after_the_close_counts_the_window_once(database: Database) -> None:
    world = World(database, rules=RULES)
    leak(world, 5, [0.0])
    world.advance(10)
    world.advance(60)
    leak(world, 6, [0.0, 1.0])
    world.advance(61)
    assert verdicts(database) == [(2, 3, 2, 1)]
    world.advance(182)
    assert events(database) == ["opened", "updated", "updated", "resolved"]


def test_a_leak_without_any_watermark_is_seen(database: Database) -> None:
    world = World(database, rules=RULES)
    leak(world, 5, [0.0])
    world.watch(10)  # no worker said how far it is: nothing ever closes
    assert events(database) == ["opened"]


def test_a_leak_that_is_taken_out_again_ends_its_problem(database: Database) -> None:
    world = World(database, rules=RULES)
    row = score_row(world.at(5), "one", {"passes": 0.0}, evaluator="leak", model="m1")
    world.store([row])
    world.advance(10)
    assert [p.state for p in world.problems()] == ["open"]
    world.store([score_row(world.at(5), "one", {"passes": 0.0}, evaluator="leak", model="m2")])  # told better
    world.advance(11)
    assert {(p.model, p.state) for p in world.problems()} == {("m1", "resolved"), ("m2", "open")}
    world.advance(60)
    world.advance(61)
    assert {(p.model, p.state) for p in world.problems()} == {("m1", "resolved"), ("m2", "open")}
    assert verdicts(database) == [(1, 1, 1, 1)]


def test_a_crash_between_the_verdict_and_its_event_loses_no_problem(database: Database) -> None:
    world = World(database, rules=RULES)
    leak(world, 5, [0.0])
    with dies_before("problem_events"):
        world.advance(10)
    assert events(database) == []
    world.elect()
    world.advance(11)
    assert events(database) == ["opened"]


def test_open_windows_are_cut_by_segments_and_judged_by_the_rules_of_their_app(database: Database) -> None:
    strict = RuleOverride(metric="quality.good", rule="any", min=0.2)
    lenient = RuleOverride(metric="quality.good", app="lab", min=0.1)
    frames = WindowSettings(out_of_orderness_s=0, segments={"tenant": ("a",)})
    world = World(database, windows=frames, rules=RULES.model_copy(update={"overrides": (strict, lenient)}))
    for app in ("shop", "lab"):
        world.scores(5, [0.15, 0.9], app=app, segments={"tenant": "a"}, name=app)
    world.advance(10)
    assert {(p.app, p.segment, p.segment_value) for p in world.open()} == {("shop", "", ""), ("shop", "tenant", "a")}


def test_other_rules_still_wait_for_the_window(database: Database) -> None:
    world = World(database, rules=RULES)
    world.scores(0, [0.1] * 20)
    world.scores(0, [0.0] * 20, evaluator="checked", key="passes")
    world.advance(30)
    assert world.problems() == []
