"""Not reading what is long over changes no answer: compared with the fold over every event there is."""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from ragtide.drift.problems import raise_from_rules, store
from ragtide.drift.problems.fold import JOB_EVENTS
from ragtide.drift.problems.model import EventRow, Problem, State
from ragtide.drift.problems.raise_from_rules import Raiser
from ragtide.drift.problems.store import fold_events, latest_episodes, load_events, load_problems
from ragtide.drift.settings import RuleSettings
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.sample_rows import APP, NOON, event
from tests.dashboards.test_problems_view import histories
from tests.drift.world import World, score_row

pytestmark = pytest.mark.clickhouse


def whole(events: Iterable[EventRow], states: Collection[State], every_episode: bool) -> list[Problem]:
    problems = fold_events(events)
    chosen = problems if every_episode else latest_episodes(problems)
    return sorted((one for one in chosen if one.state in states), key=lambda one: (one.problem_id, one.episode))


UPDATES = ("pending", "opened", "kind_opened", "resolved", "accepted", "acked", *["withdrawn"] * 3, *["updated"] * 9)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=histories() | histories(UPDATES, "p", "ab"))
def test_of_any_events_the_problems_that_go_on_are_those_of_the_whole(
    database: Database, history: list[EventRow]
) -> None:
    database.command("TRUNCATE TABLE problem_events")
    database.insert("problem_events", history)
    assert fold_events(load_events(database)) == fold_events(history)
    asked: tuple[tuple[State, ...], ...] = (("open",), ("pending", "open"))
    for states in asked:
        for every in (True, False):
            found = load_problems(database, states=states, every_episode=every)
            assert sorted(found, key=lambda one: (one.problem_id, one.episode)) == whole(history, states, every)


def test_what_is_over_is_not_read(database: Database) -> None:
    at = NOON
    database.insert(
        "problem_events",
        [
            event("over", "o1", "opened", 1, at),
            event("over", "o2", "resolved", 1, at + timedelta(minutes=1)),
            event("back", "b1", "opened", 1, at),
            event("back", "b2", "resolved", 1, at + timedelta(minutes=1)),
            event("back", "b3", "opened", 2, at + timedelta(minutes=9)),
            event("never", "n1", "pending", 1, at),
            event("never", "n2", "withdrawn", 1, at + timedelta(minutes=1)),
        ],
    )
    assert {one.event_id for one in load_events(database, unresolved=True)} == {"b1", "b2", "b3"}


def test_of_months_of_updates_those_that_change_anything_are_read(database: Database) -> None:
    """Of each kind the first and the last, of those with examples and of those without."""
    said = [
        event("p", f"u{at}{kind}", "updated", 1, NOON + timedelta(minutes=5 * at), kind=kind, examples=examples)
        for at in range(1, 60)
        for kind, examples in (("threshold", []), ("drift", [f"t{at}"] if at < 40 else []))
    ]
    began = [event("p", f"o{kind}", "opened", 1, NOON, kind=kind) for kind in ("threshold", "drift")]
    database.insert("problem_events", [*began, *said])
    for read in (load_events(database, ids=["p"]), load_events(database, unresolved=True)):
        of_drift = {"odrift", "u1drift", "u39drift", "u40drift", "u59drift"}
        assert {one.event_id for one in read} == {"othreshold", "u1threshold", "u59threshold", *of_drift}
        assert fold_events(read) == fold_events([*began, *said])
    (problem,) = load_problems(database, app=APP)
    assert problem.by_kind["drift"].examples == ("t39",)


def test_more_ids_than_a_statement_names_are_all_read(database: Database) -> None:
    database.insert(
        "problem_events", [event(f"p{at}", "o", "opened", 1, NOON) for at in range(store._IDS_PER_QUERY + 5)]
    )
    asked = {f"p{at}" for at in range(2, store._IDS_PER_QUERY + 4)}
    assert {one.problem_id for one in load_problems(database, ids=asked)} == asked


APPS = {  # minute by minute: bad, good, or no records
    "anew": "bb" + "g" * 5 + "bbgg",  # long after: another episode
    "flaps": "bbbggbbggbb",
    "pending": "bgggg-bgggb",
}
LEVELS = {"b": 0.4, "g": 0.9}
RULES = RuleSettings(
    min_sample=10, k=2, m=3, resolve_after=2, update_every_s=60, flap_s=180, flapping_openings=1, flapping_within_s=900,
    flapping_quiet_s=120,
)  # fmt: skip


def everything(database: Database, states: Collection[State], **_: object) -> list[Problem]:
    return whole(load_events(database), states, every_episode=True)


def test_the_jobs_raise_what_they_would_with_everything_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded, told = Raiser.run, []

    def run(raiser: Raiser, *asked: Any) -> list[EventRow]:
        with monkeypatch.context() as patched:
            patched.setattr(raise_from_rules, "load_problems", everything)
            patched.setattr(Database, "insert", lambda *_: None)
            expected = bounded(raiser, *asked)
        events = bounded(raiser, *asked)
        assert sorted(events) == sorted(expected)
        told.extend(events)
        return events

    monkeypatch.setattr(Raiser, "run", run)
    world = World(database, rules=RULES)
    world.store(
        [
            score_row(world.at(60 * minute + i), f"{app}-{minute}-{i}", {"good": LEVELS[letter]}, app=app)
            for app, letters in APPS.items()
            for minute, letter in enumerate(letters)
            if letter in LEVELS
            for i in range(12)
        ]
    )
    for minute in range(1, 12):
        world.advance(60 * minute)
    assert {one.event for one in told} == {"pending", "withdrawn", *JOB_EVENTS}
    assert {one.app for one in told if one.episode > 1} >= {"anew"}
