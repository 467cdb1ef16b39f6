"""A version of an evaluator that comes back is judged again, and one that scores a little of the traffic throughout."""

import json
from collections.abc import Iterator

import pytest

from ragtide.drift.backtest.rules import simulate_rules
from ragtide.drift.checks.failure_rates import FailureRates
from ragtide.drift.rules.evaluator_versions import ActiveVersion, Interval, VersionStart, active_versions
from ragtide.drift.settings import RuleOverride
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.world import EVALUATORS, World, score_row
from tests.infra.fresh_database import fresh_database

OLD, NEW = VersionStart(0, "old"), VersionStart(600, "new")


def minutes(*starts: int, lasting: int = 1) -> list[Interval]:
    return [Interval(60 * start, 60 * (start + lasting)) for start in starts]


def test_the_newest_that_scores_is_the_last() -> None:
    assert active_versions({}) == []
    both = {OLD: minutes(*range(12)), NEW: minutes(10, 11)}
    assert active_versions(both) == [ActiveVersion(OLD, 0), ActiveVersion(NEW, 600)]


def test_one_that_was_silent_for_longer_than_its_pace_explains_scores_no_more() -> None:
    spans = {OLD: minutes(*range(10), 12, 13), NEW: minutes(10, 11)}
    assert [one.version for one in active_versions(spans)] == [OLD, NEW]  # silent for 2 minutes, its stretches take one
    spans[OLD] += minutes(14)
    assert active_versions(spans) == [ActiveVersion(OLD, 0)]
    # Stretches of 5 minutes: a small share of the traffic is not over in the pause between two.
    spans = {OLD: minutes(*range(30)), NEW: minutes(10, 15, lasting=5)}
    assert active_versions(spans)[-1].version == NEW
    spans[OLD] += minutes(30)
    assert active_versions(spans)[-1].version == OLD


def test_what_was_said_before_another_took_its_place_is_of_the_past() -> None:
    returned = {OLD: minutes(*range(10), *range(20, 25)), NEW: minutes(*range(10, 20))}
    assert active_versions(returned) == [ActiveVersion(OLD, 60 * 20)]
    night = {OLD: minutes(*range(10), *range(600, 605))}
    assert active_versions(night) == [ActiveVersion(OLD, 0)], "nobody took its place"


MINUTES = 10
# Of each app the version and the value of a minute; a small letter is the same version as its large one.
PLANS = {
    "returned": ("quality", "good", "AAABBBaaaa", {"A": 0.9, "B": 0.9, "a": 0.3}),
    "taken-back": ("quality", "good", "AAABBBAAAA", {"A": 0.9, "B": 0.3}),
    "leaky": ("leak", "passes", "AABBBBBBBa", {"A": 1.0, "B": 1.0, "a": 0.0}),
    "skewed": ("quality", "good", "AAABBBaaaa", {"A": 0.9, "B": 0.9, "a": 0.76}),
}


@pytest.fixture(scope="module")
def played(clickhouse_server: EmbeddedClickHouse) -> Iterator[tuple[World, dict[str, list[str]]]]:
    """The world after it, and of each app the state of its problem after each minute, "" where there is none."""
    with fresh_database(clickhouse_server) as database:
        world = World(database)  # 2 of 3 open one, 2 good ones end it
        states: dict[str, list[str]] = {app: [] for app in PLANS}
        for number in range(MINUTES):
            rows = [
                score_row(world.at(60 * number + i), f"{app}-{number}-{i}", {key: values[plan[number]]}, app=app,
                          evaluator=evaluator, fingerprint=plan[number].upper())
                for app, (evaluator, key, plan, values) in PLANS.items()
                for i in range(20)
            ]  # fmt: skip
            world.store(rows)
            world.advance(60 * (number + 1))
            known = {problem.app: problem.state for problem in world.problems()}
            for app, of_app in states.items():
                of_app.append(known.get(app, ""))
        yield world, states


@pytest.mark.clickhouse
def test_a_version_that_comes_back_is_judged_from_then_on(played: tuple[World, dict[str, list[str]]]) -> None:
    world, states = played
    assert states["returned"] == [""] * 8 + ["open"] * 2
    (problem,) = (one for one in world.open() if one.app == "returned")
    assert problem.attributes["since"] == world.at(360).isoformat()


@pytest.mark.clickhouse
def test_a_bad_version_that_is_taken_back_ends_its_problem(played: tuple[World, dict[str, list[str]]]) -> None:
    assert played[1]["taken-back"] == [""] * 3 + ["pending"] + ["open"] * 4 + ["resolved"] * 2


@pytest.mark.clickhouse
def test_a_leak_opens_at_once_under_a_version_that_came_back(played: tuple[World, dict[str, list[str]]]) -> None:
    assert played[1]["leaky"] == [""] * 9 + ["open"]


@pytest.mark.clickhouse
def test_a_dry_run_takes_the_same_versions(played: tuple[World, dict[str, list[str]]]) -> None:
    world, _ = played
    metrics = metrics_by_name(EVALUATORS)
    tried = simulate_rules(world.database, metrics, world.rules, world.windows, world.at(0), world.at(60 * MINUTES))
    found = {one.app: (one.problem_id, list(one.openings), one.resolved_at) for one in tried}
    assert found == {one.app: (one.problem_id, [one.opened_at], one.resolved_at) for one in world.problems()}
    assert {one.app: one.windows for one in tried} == {"returned": 4, "taken-back": 3, "leaky": 1}


@pytest.mark.clickhouse
def test_failing_traces_are_counted_under_the_version_that_came_back(
    played: tuple[World, dict[str, list[str]]],
) -> None:
    world, _ = played
    rules = world.rules.model_copy(
        update={"failure_limit": 0.4, "overrides": (RuleOverride(metric="quality.good", min=0.8),)}
    )
    events = world.check(FailureRates(), world.at(60 * MINUTES + 1), rules).events
    told = {event.app: (event.event, json.loads(event.attributes)["sample_size"]) for event in events}
    assert told == {"skewed": ("opened", 60), "returned": ("kind_opened", 60)}  # the last three minutes each
