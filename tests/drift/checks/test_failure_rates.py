"""Many traces that fail are a problem also where the mean looks well, told by what they fail for."""

import pytest

from ragtide.drift.checks.failure_rates import FailureRates
from ragtide.drift.settings import RuleOverride, RuleSettings
from ragtide.evaluators.spec import Metric
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS, World, made, score_row

pytestmark = pytest.mark.clickhouse
FOUND = made("found", [Metric("relevant", threshold=0.5, primary=True)], domain="retrieval")
RULES = RuleSettings(min_sample=10, k=2, m=3, resolve_after=2, update_every_s=0, chance=1, failure_limit=0.4)
# Six of ten below 0.75, and a mean of 0.82.
SKEWED = [0.7] * 6 + [1.0] * 4


def minute(world: World, number: int, values: list[float], contexts: list[float], fails: int = 0) -> None:
    rows = []
    for i, value in enumerate(values):
        at, name = world.at(60 * number + i), f"t{number}-{i}"
        rows.append(score_row(at, name, {"good": value}))
        if i < len(contexts):
            rows.append(score_row(at, name, {"relevant": contexts[i]}, evaluator="found"))
    rows += [
        score_row(world.at(60 * number + 30 + i), f"f{number}-{i}", status="failed", reason="contract")
        for i in range(fails)
    ]
    world.store(rows)
    world.advance(60 * (number + 1))


def run_check(world: World, second: float, rules: RuleSettings = RULES) -> list[str]:
    events = world.check(FailureRates(), world.at(second), rules).events
    return [f"{event.event} {event.metric}" for event in events]


def test_many_failing_traces_are_a_problem_though_the_mean_looks_well(database: Database) -> None:
    world = World(database, rules=RULES, evaluators={**EVALUATORS, "found": FOUND})
    minute(world, 0, SKEWED, [0.2, 0.2, 0.9], fails=1)
    assert run_check(world, 61) == [], "one window is none"
    minute(world, 1, SKEWED, [0.9, 0.2, 0.9, 0.9, 0.9, 0.9, 0.1])
    lenient = RULES.model_copy(update={"overrides": (RuleOverride(metric="quality.good", failure_limit=0.6),)})
    assert run_check(world, 121, lenient) == [], "equal to the limit is good"
    assert run_check(world, 121) == ["opened quality.good"]
    world.elect()
    assert run_check(world, 121) == []
    (problem,) = world.open()
    assert (problem.kinds, problem.aspect, problem.type, problem.severity) == (
        ("failure_rate",),
        "level",
        "accuracy",
        "critical",
    )
    # Of the twelve: bad contexts 2 + 1, good ones 1 + 5, without a look at their contexts 3.
    assert problem.attributes["causes"] == {"retrieval": 3, "generation": 6, "unknown": 3, "parse": 1}
    assert "12 of 20 traces (60 %) failed quality.good, above the limit of 40 %, since " in problem.description
    assert "By cause: retrieval 3, generation 6, " in problem.description
    assert len(problem.examples) == 10
    minute(world, 2, [0.7] * 4 + [0.9] * 6, [])
    assert run_check(world, 181) == [], "40 % is not above the limit, and one good window is not two"
    minute(world, 3, [0.9] * 10, [])
    assert run_check(world, 241) == ["resolved quality.good"]


def test_the_mean_and_the_failing_share_are_one_problem(database: Database) -> None:
    world = World(database, rules=RULES)
    for number in range(2):
        minute(world, number, [0.3] * 10, [])
    assert run_check(world, 121) == ["kind_opened quality.good"]
    (problem,) = world.open()
    assert problem.kinds == ("threshold", "failure_rate")
