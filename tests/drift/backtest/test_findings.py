"""Remarks, leaked kinds and dead letters, tried on stored rows, are what the jobs raised, on the real engine."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import pytest

from ragtide.drift.backtest.run import backtest, diff_with_raised
from ragtide.drift.backtest.simulate import SimulatedProblem
from ragtide.drift.checks.dead_letters import DeadLetters
from ragtide.drift.checks.findings import Findings
from ragtide.drift.problems.report import Detection, ProblemKey, build_details, report_detections
from ragtide.drift.settings import JobSettings, LimitOverride, RuleOverride, RuleSettings, WindowSettings
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import ScoreRow
from tests.drift.backtest.contract import counts, raised_summaries, simulated_summaries
from tests.drift.world import LEAK, QUALITY, World, score_row
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse
ALL = {one.id: one for one in (QUALITY, LEAK)}
RULES = RuleSettings(
    min_sample=10, finding_traces=4, finding_limit=0.2, dead_letters=20, update_every_s=0, flap_s=0,
    limits=(LimitOverride(app="strict", finding_limit=0.03),),
)  # fmt: skip
OVER = 170  # minutes
JOBS = JobSettings()


class Letter(NamedTuple):
    """A row of `dead_letters`; other columns have their defaults."""

    run_id: str
    topic: str
    partition: int
    offset: int
    time: datetime
    reason: str
    ingested_at: datetime


def traces(world: World, minute: int) -> list[ScoreRow]:
    """Of ten minutes: remarks on some, and addresses that leak."""
    rows = []
    remarks = {"shop": {10: 10, 90: 12, 100: 8}, "strict": {10: 4}}
    for app, several in remarks.items():
        for i in range(12 if app == "shop" else 60):
            row = score_row(world.at(60 * minute + i), f"{app}-{minute}-{i}", {"good": 0.9}, app=app)
            rows.append(row._replace(findings=["too_short"] if i < several.get(minute, 0) else []))
    for i in range(5 if minute == 20 else 0):
        evidence = json.dumps([{"field": "answer", "start": 0, "end": 1, "kind": "email"}])
        at = world.at(60 * minute + i)
        rows.append(score_row(at, f"l-{minute}-{i}", {"passes": 0.0}, app="leaky", evaluator="leak", evidence=evidence))
    return rows


def letters(world: World, minute: int) -> list[Letter]:
    at, count = world.at(60 * minute + 1), {10: 15, 20: 9, 90: 60}.get(minute, 0)
    return [Letter("live", "rag.traces", 0, 1000 * minute + i, at, "not_json", at) for i in range(count)]


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    """What the jobs raised, who look when the tenth minute of each ended."""
    frames = WindowSettings(base_s=600, out_of_orderness_s=0, sizes_s=(3600,))
    with fresh_database(clickhouse_server) as database:
        world = World(database, windows=frames, rules=RULES, evaluators=ALL)
        for minute in range(0, OVER, 10):
            world.store(traces(world, minute))
            database.insert("dead_letters", letters(world, minute))
            now = world.at(60 * (minute + 10))
            database.insert("watermarks", [WatermarkRow("fast", "rag.traces", now)])
            world.check(Findings(), now)
            world.check(DeadLetters(), now)
        yield world


def simulate(world: World, rules: RuleSettings = RULES) -> list[SimulatedProblem]:
    return backtest(world.database, ALL, rules, world.windows, JOBS, world.at(0), world.at(OVER * 60))


@pytest.mark.parametrize("portion_s", [6 * 3600, 3600])
def test_the_same_settings_would_have_raised_what_jobs_raised_and_nothing_is_written(
    world: World, portion_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragtide.drift.checks.findings._READ_S", portion_s)
    before = counts(world.database)
    found = simulate(world)
    assert simulated_summaries(found) == raised_summaries(world.database)
    assert counts(world.database) == before
    assert {(one.app, one.rule, one.segment_value, one.episode) for one in found} == {
        ("shop", "finding", "too_short", 1),
        ("shop", "finding", "too_short", 2),
        ("strict", "finding", "too_short", 1),
        ("leaky", "finding", "email", 1),
        ("", "dead_letters", "rag.traces", 1),
        ("", "dead_letters", "rag.traces", 2),
    }
    against = diff_with_raised(world.database, found, world.at(0), world.at(OVER * 60), detectors=False)
    assert (against.new, against.gone) == ((), ())


def test_each_opens_when_its_hour_has_too_many_and_ends_when_it_has_half_as_many(world: World) -> None:
    """By hand: 10 of 24, until they are an hour old; 12 of 72 are too few, 20 of 72 are not."""
    times = {
        (one.app, one.episode): tuple(
            at and (at - world.start).total_seconds() / 60 for at in (*one.openings, one.resolved_at)
        )
        for one in simulate(world)
    }
    assert (times["shop", 1], times["shop", 2]) == ((20, 80), (110, 170))
    assert times["strict", 1] == (20, 50)  # 4 of 120, until 4 of 300 are less than half of 0.03
    assert times["leaky", 1] == (30, 90)
    assert times["", 1] == (30, 80)  # 24 until the first 15 are an hour old: 9 are less than half of 20


def test_other_limits_are_told_apart_from_those_that_ran(world: World) -> None:
    other = RULES.model_copy(
        update={
            "limits": (),
            "dead_letters": 30,
            "overrides": (RuleOverride(metric="leak.passes", allow_kinds=("email",)),),
        }
    )
    found = simulate(world, other)
    against = diff_with_raised(world.database, found, world.at(0), world.at(OVER * 60), detectors=False)
    assert {one.app for one in against.gone} == {"strict", "leaky"}
    assert [one.episode for one in found if one.rule == "dead_letters"] == [1]


def test_what_has_no_past_is_not_said_to_be_gone(database: Database) -> None:
    world = World(database)
    places = [
        ProblemKey.of_system("storage", "disk", "default"),
        ProblemKey.of_system("storage", "retention", "ragtide-fast rag.traces"),
        ProblemKey.of_system("storage", "dead_letters", "rag.traces"),
        ProblemKey.of_system("jobs", "job", "drift"),
    ]
    now = world.at(60)
    told = [
        Detection(
            place, build_details("threshold", place, None, "it is so", {}, RULES, severity="info"), world.at(0), now
        )
        for place in places
    ]
    report_detections(database, told, RULES, world.term, now)
    against = diff_with_raised(database, [], world.at(0), world.at(120), detectors=True)
    assert [one.segment for one in against.gone] == ["dead_letters"]
