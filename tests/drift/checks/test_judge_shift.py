"""A judge that scores the same traces differently than in its first runs is a problem of its own."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from ragtide.drift.attributes import EvidenceWindow
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


def store(
    database: Database,
    runs: range,
    level: Level,
    fingerprint: str = "f1",
    content: str = "",
    canaries: range = range(CANARIES),
    scheduled: bool = True,
    of: int = 0,
) -> None:
    """Runs of judge `quality`, one a day; incomplete ones with `of` more canaries than those."""
    rows = [
        CanaryScoreRow(
            evaluator="quality",
            fingerprint=fingerprint,
            run_at=day(run),
            scheduled=scheduled,
            canaries=of or len(canaries),
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
        for number in canaries
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


def changes(world: World, days: range) -> dict[int, list[str]]:
    """The events of a check a day, without those that only update."""
    found = {number: [kind for kind in events(world, number + 0.1) if kind != "updated"] for number in days}
    return {number: kinds for number, kinds in found.items() if kinds}


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
    assert events(world, 11.1) == [], "the others score as before"
    store(database, range(12, 15), stricter_from(0))
    assert events(world, 14.1) == ["opened"]
    store(database, range(15, 19), lambda run, number: None)
    assert events(world, 18.1) == [], "nobody can tell"
    assert only(world).state == "open"
    store(database, range(19, 23), steady)
    assert events(world, 22.1) == ["resolved"]


def test_a_shift_that_lasts_keeps_its_onset(database: Database) -> None:
    """Single runs in it score as before, and their number exceeds what a check loads at first."""
    world = World(database, rules=RULES)
    noisy = [40, 70]
    store(database, range(120), lambda run, number: (steady if run in noisy else stricter_from(10))(run, number))
    for at in (13.1, 38.1, 42.1, 45.1, 119.1):
        events(world, at)
        problem = only(world)
        assert problem.onset == day(10), at
        assert problem.evidence.window == EvidenceWindow(start=day(9), end=day(10)), at


def test_runs_without_scores_do_not_bound_the_onset(database: Database) -> None:
    """The judge was away before the shift: it may have changed at any time since its last scores."""
    world = World(database, rules=RULES)
    store(database, range(14), lambda run, number: None if run in {8, 9} else stricter_from(10)(run, number))
    assert events(world, 13.1) == ["opened"]
    assert only(world).evidence.window == EvidenceWindow(start=day(7), end=day(10))


def test_a_shift_that_ended_does_not_begin_the_next_one(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(60), lambda run, number: stricter_from(10, 30 if run < 40 else 1_000)(run, number))
    assert changes(world, range(60)) == {10: ["opened"], 32: ["resolved"], 40: ["opened"]}
    assert only(world).onset == day(40)


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


def test_a_run_of_the_command_with_another_model_leaves_the_problem_open(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(12), stricter_from(9))
    assert events(world, 11.1) == ["opened"]
    store(database, range(12, 13), steady, fingerprint="f2", scheduled=False)
    assert events(world, 12.1) == []
    store(database, range(13, 14), steady, fingerprint="f2")
    assert events(world, 13.1) == ["resolved"], "now the settings name the other model"


def test_runs_of_the_command_alone_are_compared_too(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(8), steady, fingerprint="f0")
    store(database, range(30, 40), stricter_from(36), scheduled=False)
    assert changes(world, range(30, 40)) == {36: ["opened"]}


def test_a_run_is_compared_once_it_is_complete_or_over(database: Database) -> None:
    """The first half of a run has the canaries that the judge scores lower."""
    world = World(database, rules=RULES)
    store(database, range(10), steady)
    store(database, range(10, 11), lambda run, number: steady(run, number) - 0.5, canaries=range(12), of=CANARIES)
    assert events(world, 10.01) == []
    store(database, range(10, 11), steady, canaries=range(12, CANARIES))
    assert events(world, 10.02) == ["opened"], "all of them have a row"
    store(database, range(11, 12), steady, canaries=range(12), of=CANARIES)
    assert "in 1 run." in only(world).description
    assert [events(world, at) for at in (11.01, 11.1)] == [[], ["updated"]], "two hours later no more are expected"


def test_the_reference_is_of_the_first_runs_with_scores(database: Database) -> None:
    """The endpoint is away in the first runs, or in some of them."""
    world = World(database, rules=RULES)
    store(database, range(14), lambda run, number: None if run in {0, 1, 3} else stricter_from(10)(run, number))
    assert changes(world, range(14)) == {10: ["opened"]}
    assert only(world).attributes["reference"] == [day(run).isoformat() for run in (2, 4, 5, 6, 7)]


def test_canaries_with_other_texts_have_a_reference_of_their_own(database: Database) -> None:
    """A shift of the canaries of before ends with them, and one of the new canaries is found."""
    world = World(database, rules=RULES)
    store(database, range(12), stricter_from(10))
    assert events(world, 11.1) == ["opened"]
    store(database, range(12, 30), stricter_from(20), content="edited")
    assert changes(world, range(12, 30)) == {12: ["resolved"], 20: ["opened"]}


def test_fewer_canaries_are_compared_with_the_same_ones(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(12), steady)
    store(database, range(12, 24), stricter_from(16), canaries=range(8))
    assert changes(world, range(24)) == {17: ["opened"]}


def test_a_judge_without_runs_for_weeks_or_without_settings_has_no_problem(database: Database) -> None:
    world = World(database, rules=RULES)
    store(database, range(12), stricter_from(9))
    assert events(world, 11.1) == ["opened"]
    assert world.check(JudgeShifts(), day(11.2), RULES, evaluators={}).events[0].event == "resolved"
    assert events(world, 20) == ["opened"]
    assert events(world, 40) == ["resolved"]


def test_a_noisy_judge_that_does_not_change_raises_nothing(database: Database) -> None:
    rng = random.Random(3)
    shares = [rng.random() for _ in range(CANARIES)]
    world = World(database, rules=RULES)
    store(database, range(60), lambda run, number: float(rng.random() < shares[number]))
    assert [events(world, number + 0.1) for number in range(60)] == [[]] * 60
