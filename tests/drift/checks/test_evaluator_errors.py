"""An evaluator that keeps failing is a problem, told by its reasons, until it works again."""

import pytest

from ragtide.drift.checks.evaluator_errors import EvaluatorErrors
from ragtide.drift.checks.hysteresis import WindowCount, k_of_m
from ragtide.drift.settings import LimitOverride, RuleSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World, score_row

RULES = RuleSettings(min_sample=10, k=2, m=3, resolve_after=2, update_every_s=0, chance=1)


def windows(*wrong: int, records: int = 10) -> list[WindowCount]:
    return [WindowCount(60 * i, 60 * (i + 1), records, count) for i, count in enumerate(wrong)]


def test_bad_is_k_of_the_last_m_and_good_so_many_in_a_row() -> None:
    assert k_of_m(windows(0, 5, 5), 0.2, RULES) == ("bad", WindowCount(60, 180, 20, 10))
    assert k_of_m(windows(5, 0, 5), 0.2, RULES) == ("bad", WindowCount(0, 180, 30, 10))
    assert k_of_m(windows(9, 9, 2), 0.2, RULES).state == "unclear", "the newest is at the limit, not above it"
    assert k_of_m(windows(9, 0, 0), 0.2, RULES).state == "good"
    assert k_of_m(windows(0, 0, 9), 0.2, RULES).state == "unclear"
    assert k_of_m([], 0.2, RULES).state == "unclear"


def test_few_records_are_pooled_backwards_until_they_are_enough() -> None:
    rare = windows(4, 0, 0, 4, 0, records=4)
    # 12, 8 and 4 records: three windows make a stretch, the two before are too few for another.
    assert k_of_m(rare, 0.2, RULES).state == "unclear"
    assert k_of_m(windows(4, 4, 4, 4, 4, 4, records=4), 0.2, RULES) == ("bad", WindowCount(0, 360, 24, 24))


def minute(world: World, number: int, failed: int, of: int = 12, reason: str = "timeout") -> None:
    rows = [
        score_row(
            world.at(60 * number + i),
            f"t{number}-{i}",
            {} if i < failed else {"good": 0.9},
            status="failed" if i < failed else "scored",
            reason=reason if i < failed else "",
        )
        for i in range(of)
    ]
    world.store(rows)
    world.advance(60 * (number + 1))


def run_check(world: World, second: float, rules: RuleSettings = RULES) -> list[str]:
    return [event.event for event in world.check(EvaluatorErrors(), world.at(second), rules).events]


@pytest.mark.clickhouse
def test_an_evaluator_that_keeps_failing_is_a_problem_until_it_works_again(database: Database) -> None:
    world = World(database, rules=RULES)
    minute(world, 0, 6)
    assert run_check(world, 61) == [], "one window is none"
    minute(world, 1, 5, reason="crashed")
    assert run_check(world, 121) == ["opened"]
    world.elect()
    assert run_check(world, 121) == [], "the next leader says nothing twice"
    (problem,) = [one for one in world.open() if one.aspect == "error"]
    assert (problem.type, problem.code, problem.severity) == ("runtime", "P0203 Scaling", "critical")
    assert (problem.attributes["wrong"], problem.attributes["sample_size"]) == (11, 24)
    assert "quality failed on 11 of 24 traces (45.8 %), above the limit of 5 %, since " in problem.description
    assert problem.description.endswith(" Reasons: timeout 6, crashed 5.")
    assert problem.examples[:5] == tuple(f"t1-{i}" for i in (4, 3, 2, 1, 0))
    assert "Accountable and Transparent" in problem.standards
    minute(world, 2, 0)
    assert run_check(world, 181) == [], "one good window is not enough"
    minute(world, 3, 0)
    assert run_check(world, 241) == ["resolved"]
    assert run_check(world, 241) == []


@pytest.mark.clickhouse
def test_a_problem_without_any_window_for_hours_is_over(database: Database) -> None:
    world = World(database, rules=RULES)
    minute(world, 0, 12)
    minute(world, 1, 12)
    assert run_check(world, 121) == ["opened"]
    assert run_check(world, 121 + 7 * 3600) == ["resolved"]


@pytest.mark.clickhouse
def test_an_app_may_have_a_limit_of_its_own(database: Database) -> None:
    world = World(database, rules=RULES)
    minute(world, 0, 6)
    minute(world, 1, 5)
    lenient = RULES.model_copy(update={"limits": (LimitOverride(app="shop", error_limit=0.5),)})
    assert run_check(world, 121, lenient) == []
    both = (LimitOverride(app="other", error_limit=0.5), LimitOverride(evaluator="quality", error_limit=0.1))
    assert run_check(world, 121, RULES.model_copy(update={"limits": both})) == ["opened"]
    (problem,) = [one for one in world.open() if one.aspect == "error"]
    assert problem.attributes["limit"] == 0.1
    assert "above the limit of 10 %" in problem.description
