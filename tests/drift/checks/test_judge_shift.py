"""A judge that scores the same traces otherwise than at first is a problem of its own."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from ragtide.drift.canaries import CanaryScoreRow
from ragtide.drift.checks.judge_shift import JudgeShifts
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.operator_actions import accept
from ragtide.drift.settings import RuleSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World

DAY = datetime(2026, 11, 1, tzinfo=UTC)
RULES = RuleSettings(update_every_s=0)
CANARIES = 24
Level = Callable[[int, int], float | None]  # of a run and canary; None: no score

pytestmark = pytest.mark.clickhouse


def day(number: float) -> datetime:
    return DAY + timedelta(days=number)


def store(database: Database, runs: range, level: Level, fingerprint: str = "f1", content: str = "") -> None:
    """Runs of judge `quality`, one a day."""
    rows = [
        CanaryScoreRow(
            evaluator="quality",
            fingerprint=fingerprint,
            run_at=day(run),
            canary=f"c{number}",
            form="",
            content=content or f"content-{number}",
            direction=1,
            endpoint="small",
            status="failed" if (value := level(run, number)) is None else "scored",
            reason="judge_unavailable" if value is None else "",
            metrics={} if value is None else {"good": value, "other": 0.5},
        )
        for run in runs
        for number in range(CANARIES)
    ]
    database.insert("canary_scores", rows)


def steady(run: int, number: int) -> float:
    """Half of the canaries get 1, the others 0.5."""
    return 1.0 if number % 2 else 0.5


def stricter_from(first: int, until: int = 1_000, by: float = 0.25) -> Level:
    """A judge that scores every second canary lower in these runs."""
    return lambda run, number: steady(run, number) - (by if first <= run < until and number % 2 else 0.0)


def events(world: World, at: float) -> list[str]:
    return [one.event for one in world.check(JudgeShifts(), day(at), RULES).events]


def only(world: World) -> Problem:
    [problem] = world.open()
    return problem


def test_a_shift_opens_a_problem_that_says_it_is_the_judges_and_ends_with_it(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(30), stricter_from(10, 20))
    found = {number: kinds for number in range(30) if (kinds := events(world, number + 0.1))}
    assert found[10] == ["opened"], "at once: half of the canaries fell"
    assert [number for number, kinds in found.items() if "resolved" in kinds] == [22], "three runs as at first"
    world.elect()
    assert events(world, 29.2) == []


def test_the_problem_has_the_figures_and_where_to_look(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(14), stricter_from(10))
    assert events(world, 13.1) == ["opened"]
    problem = only(world)
    assert problem.description == (
        "Judge quality (endpoint small) scores the same traces 0.125 lower (0.75 → 0.625) since "
        "2026-11-11 00:00:00 UTC, on 24 canaries in 4 runs. Changes of quality.good since 2026-11-10 00:00:00 UTC may "
        "be the judge's, not the application's."
    )
    assert problem.title.startswith("ragtide: Judge quality (endpoint small) scores the same traces 0.125 lower")
    assert (problem.app, problem.aspect, problem.metric) == ("", "judge", "quality.good")
    assert (problem.type, problem.severity, problem.kinds) == ("data_quality", "warning", ("judge_shift",))
    assert problem.code == "P0104 Data quality issues"
    assert (problem.evidence.baseline, problem.evidence.value) == (0.75, 0.625)
    assert problem.onset == day(10)
    assert problem.attributes["p"] <= RULES.chance
    assert problem.actions[0].startswith("Ask the endpoint's provider")


def test_an_improvement_is_a_shift_too(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(9), lambda run, number: steady(run, number) + (0.2 if run > 5 and not number % 2 else 0.0))
    assert events(world, 8.1) == ["opened"]
    assert "0.1 higher (0.75 → 0.85)" in only(world).description


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("one canary flips", lambda run, number: 0.0 if run > 9 and number == 1 else steady(run, number)),
        ("smaller than the limit", stricter_from(10, by=0.08)),
        ("too few runs of a reference", lambda run, number: stricter_from(3)(run, number) if run < 5 else None),
        ("never a score", lambda run, number: None),
    ],
)
def test_nothing_is_raised_without_a_shift(database: Database, name: str, level: Level) -> None:
    world = World(database, rules=RULES)
    store(database, range(20), level)
    assert [events(world, number + 0.1) for number in range(20)] == [[]] * 20, name


def test_canaries_without_a_score_are_no_shift_and_clear_none(database: Database) -> None:
    """A judge that fails on the canaries that it scored high, and on all."""
    world = World(database, rules=RULES)
    store(database, range(8), steady)
    store(database, range(8, 12), lambda run, number: None if number % 3 == 1 else steady(run, number))
    assert events(world, 11.1) == [], "the others are as ever"
    store(database, range(12, 15), stricter_from(0))
    assert events(world, 14.1) == ["opened"]
    store(database, range(15, 19), lambda run, number: None)
    assert events(world, 18.1) == [], "nobody can tell"
    assert only(world).state == "open"
    store(database, range(19, 23), steady)
    assert events(world, 22.1) == ["resolved"]


def test_an_accepted_shift_is_the_new_reference(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(14), stricter_from(10))
    assert events(world, 13.1) == ["opened"]
    accept(database, only(world), "ada", day(13.2), "the provider fixed its model")
    assert world.open() == []
    assert events(world, 13.3) == [], "evidence from before opens nothing"
    store(database, range(14, 25), stricter_from(10))
    assert [events(world, number + 0.1) for number in range(14, 25)] == [[]] * 11
    store(database, range(25, 28), steady)
    assert events(world, 27.1) == ["opened"], "back to the first level: a shift of the new reference"
    assert "0.125 higher (0.625 → 0.75)" in only(world).description


def test_a_new_version_of_the_judge_begins_a_new_reference(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(12), stricter_from(9))
    assert events(world, 11.1) == ["opened"]
    store(database, range(12, 20), stricter_from(0), fingerprint="f2")
    assert events(world, 12.1) == ["resolved"], "the fingerprint says that the judge is another one"
    assert [events(world, number + 0.1) for number in range(13, 20)] == [[]] * 7


def test_a_canary_with_another_text_is_another_canary(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(10), steady)
    store(database, range(10, 14), stricter_from(0), content="edited")
    assert events(world, 13.1) == []


def test_a_judge_without_runs_for_weeks_or_without_settings_has_no_problem(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(12), stricter_from(9))
    assert events(world, 11.1) == ["opened"]
    assert world.check(JudgeShifts(), day(11.2), RULES, evaluators={}).events[0].event == "resolved"
    assert events(world, 20) == ["opened"]
    assert events(world, 40) == ["resolved"]


def test_a_noisy_judge_that_does_not_change_raises_nothing(database: Database) -> None:
    lots = random.Random(3)
    shares = [lots.random() for _ in range(CANARIES)]
    world = World(database, rules=RULES)
    store(database, range(60), lambda run, number: float(lots.random() < shares[number]))
    assert [events(world, number + 0.1) for number in range(60)] == [[]] * 60
