"""Remarks of evaluators and leaked kinds are gathered into one problem each, while an hour has many of them."""

import json
from typing import Any

import pytest

from ragtide.drift.checks.findings import Findings
from ragtide.drift.problems.groups import group
from ragtide.drift.settings import LimitOverride, RuleOverride, RuleSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ScoreRow
from tests.drift.world import World, score_row

pytestmark = pytest.mark.clickhouse
RULES = RuleSettings(min_sample=10, finding_traces=4, finding_limit=0.2, update_every_s=0)
HOUR = 3600


def remarks(world: World, second: float, short: int, of: int, **fields: Any) -> None:
    rows = [score_row(world.at(second + i), f"t{second}-{i}", {"good": 0.9}, **fields) for i in range(of)]
    world.store([row._replace(findings=["too_short"]) if i < short else row for i, row in enumerate(rows)])


def leaks(world: World, second: float, *kinds: list[str], passes: float = 0.0) -> None:
    def row(i: int, found: list[str]) -> ScoreRow:
        evidence = json.dumps(
            [{"field": "answer", "start": j, "end": j + 1, "kind": one} for j, one in enumerate(found)]
        )
        at = world.at(second + i)
        return score_row(at, f"l{second}-{i}", {"passes": passes}, evaluator="leak", evidence=evidence)

    world.store([row(i, found) for i, found in enumerate(kinds)])


def run_check(world: World, second: float, rules: RuleSettings = RULES) -> list[str]:
    world.advance(second)
    events = world.check(Findings(), world.at(second), rules).events
    return [f"{event.event} {event.metric} {event.segment_value}" for event in events]


def test_a_remark_on_many_traces_is_one_problem_until_it_is_rarer(database: Database) -> None:
    world = World(database)
    remarks(world, 0, 3, 12)
    assert run_check(world, 60) == [], "three are fewer than four"
    remarks(world, 60, 1, 3)
    remarks(world, 90, 5, 5, run_id="replay", environment="")
    assert run_check(world, 120) == ["opened quality too_short"]
    world.elect()
    assert run_check(world, 120) == []
    (problem,) = [one for one in world.open() if one.aspect == "finding"]
    assert (problem.type, problem.code, problem.severity) == ("data_quality", "P0104 Data quality issues", "critical")
    assert "quality reported too_short in 4 of 15 traces (26.7 %) of the last hour" in problem.description
    assert problem.examples == ("t0-0", "t0-1", "t0-2", "t60-0")
    remarks(world, HOUR + 60, 2, 20)
    assert run_check(world, HOUR + 100) == ["resolved quality too_short"], (
        "2 of 20 are half the number, below half the share"
    )


def test_a_share_below_the_limit_is_no_problem_however_many(database: Database) -> None:
    world = World(database)
    remarks(world, 0, 4, 40)
    assert run_check(world, 60) == []


def test_an_app_and_an_evaluator_may_have_limits_of_their_own(database: Database) -> None:
    world = World(database)
    remarks(world, 0, 4, 40)
    own = (LimitOverride(app="shop", finding_limit=0.05), LimitOverride(evaluator="leak", finding_traces=1))
    rules = RULES.model_copy(update={"limits": own})
    assert run_check(world, 60, rules) == ["opened quality too_short"]
    (problem,) = [one for one in world.open() if one.aspect == "finding"]
    assert problem.attributes["limit"] == 0.05


def test_the_same_leaked_kind_in_many_answers_is_one_problem_of_that_kind(database: Database) -> None:
    world = World(database)
    leaks(world, 0, ["email"], ["email", "email", "phone"], ["email"], ["email"], ["phone"])
    leaks(world, 20, ["phone"], ["phone"], ["phone"], passes=1.0)
    allowed = RULES.model_copy(update={"overrides": (RuleOverride(metric="leak.passes", allow_kinds=("email",)),)})
    assert run_check(world, 60, allowed) == []
    assert run_check(world, 60) == ["opened leak email"], "phones of answers that passed do not count"
    found = world.open()
    assert {(one.type, one.code, one.severity) for one in found} == {("privacy", "P0300 Privacy", "critical")}
    folded = group(found, world.at(60)).fold(found)
    assert [one.aspect for one in folded] == ["level"], "every score and its kind: one leak"
    world.advance(120)
    [stored] = database.rows("SELECT aspect, parent_id FROM problems WHERE parent_id != ''")
    assert stored == {"aspect": "finding", "parent_id": folded[0].problem_id}
    (problem,) = [one for one in world.open() if one.aspect == "finding"]
    assert problem.severity == "critical"
    assert problem.examples[0] == "l0-1", "most of it first"
    assert (problem.attributes["wrong"], problem.attributes["sample_size"]) == (4, 8)
