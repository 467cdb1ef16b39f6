"""Open problems get a cause of their own, on the real engine: traffic, rules, problems, explanations."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ragtide.drift.problems.model import EventRow, Problem
from ragtide.drift.problems.store import fold_events, load_events
from ragtide.drift.rootcause_job import MAX_ATTEMPTS, MAX_TRIES, RootCauseJob, RootCauseResult, query_for
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import ScoreRow
from tests.drift.world import EVALUATORS, World, score_row
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse
ONSET, END = 70, 76  # minutes
TENANTS = ("acme", "beta", "gamma")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
METRICS = metrics_by_name(EVALUATORS)


def traces(
    world: World, app: str, hit: tuple[str, ...], onset: int = ONSET, minutes: range = range(END)
) -> Iterator[ScoreRow]:
    """Fifteen a minute; the tenants that are hit fall from 0.9 to 0.4."""
    random = np.random.default_rng(5)
    for nth in range(minutes.start * 15, minutes.stop * 15):
        tenant = TENANTS[nth % 3]
        mean = 0.4 if nth >= onset * 15 and tenant in hit else 0.9
        value = float(random.normal(mean, 0.02))
        yield score_row(world.at(nth * 4), f"{app}-{nth}", {"good": value}, app=app, segments={"tenant": tenant})


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    """Of one application a tenant fell, of another all tenants; the rules have opened their problems."""
    with fresh_database(clickhouse_server) as database:
        world = World(
            database,
            windows=WindowSettings(base_s=60, out_of_orderness_s=0, segments={"tenant": TENANTS}),
            settings=JobSettings(explain_problems=4),
        )
        world.store([*traces(world, "one", ("acme",)), *traces(world, "all", TENANTS)])
        world.advance(END * 60)
        yield world


def unsegmented_problem(world: World, app: str) -> Problem:
    (found,) = (one for one in world.open() if (one.app, one.segment) == (app, ""))
    return found


def test_what_cannot_be_explained_is_tried_a_few_times(world: World) -> None:
    explaining, now = RootCauseJob(), world.at(END * 60)
    world.database.command("RENAME TABLE verdicts TO away")
    try:
        failed = [explaining.run(world.jobs, now).failed for _ in range(2 * MAX_TRIES + 1)]
    finally:
        world.database.command("RENAME TABLE away TO verdicts")
    assert sum(failed) == MAX_TRIES * len(world.open())
    assert failed[-1] == 0
    assert not any(one.explanation for one in world.open())
    assert explaining.run(world.jobs, now) == RootCauseResult(0, 0)  # until the next process


def test_a_database_that_goes_away_meanwhile_spends_no_tries_of_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    explaining, now, rows = RootCauseJob(), world.at(END * 60), Database.rows

    def gone(self: Database, sql: str, *bound: Any, **more: Any) -> list[dict[str, Any]]:
        if "verdicts" in sql:
            raise Transient("no answer")
        return rows(self, sql, *bound, **more)

    monkeypatch.setattr(Database, "rows", gone)
    for _ in range(MAX_TRIES):
        with pytest.raises(Transient):
            explaining.run(world.jobs, now)
    assert sorted(explaining.failures.values())[-2:] == [0, MAX_TRIES]


def test_the_cause_stands_in_the_problem_and_no_kinds_words_change(world: World) -> None:
    before = {one.problem_id: one for one in world.open()}
    explaining, now = RootCauseJob(), world.at(END * 60)
    told = [explaining.run(world.jobs, now).explained for _ in range(3)]
    assert told == [4, 2, 0]
    assert RootCauseJob().run(world.jobs, now) == RootCauseResult(0, 0)  # another leader
    one = unsegmented_problem(world, "one")
    assert [(culprit["dimension"], culprit["value"]) for culprit in one.cause["culprits"]] == [("tenant", "acme")]
    assert one.explanation.startswith("Tenant acme explains ")
    assert " of the drop (mean 0.9 → 0.4" in one.explanation
    everywhere = unsegmented_problem(world, "all")
    assert everywhere.cause["culprits"] == []
    assert everywhere.explanation == "No single tenant explains the drop."
    for problem in world.open():
        assert replace(problem, explanation="", cause={}) == before[problem.problem_id]
    shown = world.database.rows("SELECT problem_id, explanation, cause FROM problems")
    assert {row["problem_id"]: row["explanation"] for row in shown} == {
        problem.problem_id: problem.explanation for problem in world.open()
    }


def test_two_leaders_that_explain_the_same_write_the_same(world: World) -> None:
    def ids() -> set[str]:
        return {row.event_id for row in load_events(world.database) if row.event == "explained"}

    before = ids()
    world.database.command("DELETE FROM problem_events WHERE event = 'explained'")
    world.elect()
    assert RootCauseJob().run(world.jobs, world.at(END * 60 + 7)).explained == 4
    again = ids()
    assert len(again) == 4
    assert again < before


def test_what_too_few_windows_could_not_tell_is_asked_again_once_there_are_enough(database: Database) -> None:
    frames = WindowSettings(base_s=60, out_of_orderness_s=0, segments={"tenant": TENANTS})
    world = World(database, windows=frames)

    def asked(minute: int) -> RootCauseResult:
        return RootCauseJob().run(world.jobs, world.at(60 * minute))

    world.store(list(traces(world, "new", ("acme",), onset=20, minutes=range(24))))
    world.advance(24 * 60)
    assert asked(24).explained == len(world.open()) == 2
    early = unsegmented_problem(world, "new")
    assert early.explanation.startswith("Too few windows")
    assert (early.cause["attempt"], early.cause["times"]) == (1, 23), "what was bad before the onset is left out"
    world.store(list(traces(world, "new", ("acme",), onset=20, minutes=range(24, 52))))
    world.advance(52 * 60)
    assert asked(49) == RootCauseResult(0, 0), "26 windows more are needed at least"
    assert asked(52).explained == 2
    known = unsegmented_problem(world, "new")
    assert known.explanation.startswith("Tenant acme explains ")
    assert (known.cause["attempt"], known.cause["again_at"]) == (2, None)
    assert asked(1000) == RootCauseResult(0, 0)


def test_it_is_asked_a_few_times_at_most_and_ever_later(database: Database) -> None:
    world = World(database)
    world.store([*traces(world, "new", TENANTS, onset=20, minutes=range(24))])
    world.advance(24 * 60)
    minute, attempts = 24, []
    for _ in range(MAX_ATTEMPTS + 2):
        told = RootCauseJob().run(world.jobs, world.at(60 * minute)).explained
        cause = unsegmented_problem(world, "new").cause
        attempts += [minute] * told
        minute = minute if cause["again_at"] is None else _minute(world, cause["again_at"])
    assert attempts == [24, 24 + 28, 24 + 28 + 56, 24 + 28 + 56 + 112]


def _minute(world: World, at: str) -> int:
    return round((datetime.fromisoformat(at) - world.start).total_seconds() / 60)


def event(name: str, minute: int, **said: object) -> EventRow:
    attributes = json.dumps(said)
    at = NOON + timedelta(minutes=minute)
    return EventRow(
        "p", f"e{minute}", name, 1, at, "shop", "prod", "m1", "level", "quality.good", "", "", "threshold",
        description=name, attributes=attributes,
    )  # fmt: skip


def test_a_new_opening_has_a_cause_of_its_own() -> None:
    life = [event("opened", 0), event("explained", 1, opening=1), event("resolved", 2), event("reopened", 3)]
    explanations = []
    for more in range(len(life)):
        (problem,) = fold_events(life[: more + 1])
        explanations.append(problem.explanation)
    assert explanations == ["", "explained", "explained", ""]


def reported_problem(kind: str, metric: str, **said: object) -> Problem:
    (problem,) = fold_events([event("opened", 0, **said)._replace(kind=kind, metric=metric)])
    return problem


def test_what_is_asked_of_a_problem() -> None:
    span = {"since": NOON.isoformat(), "until": (NOON + timedelta(minutes=9)).isoformat()}
    rules = RuleSettings()
    asked = query_for(reported_problem("threshold", "quality.good", **span), METRICS, rules)
    assert asked is not None
    assert (asked.since, asked.until, asked.model) == (NOON, NOON + timedelta(minutes=9), "m1")
    assert asked.rule is not None
    assert asked.rule.min == 0.75
    slow = query_for(reported_problem("change_point", "speed.seconds", **span), METRICS, rules)
    assert slow is not None
    assert slow.rule is None
    came = query_for(reported_problem("change_point", "speed.seconds", model_before="m0", **span), METRICS, rules)
    assert came is not None
    assert came.model is None  # of m1 alone nothing is known before
    assert query_for(reported_problem("change_point", "quality.good", channel="spread", **span), METRICS, rules) is None
    assert query_for(reported_problem("threshold", "gone.away", **span), METRICS, rules) is None
    assert (
        query_for(reported_problem("threshold", "quality.good"), METRICS, rules) is not None
    )  # seen, and no more known
