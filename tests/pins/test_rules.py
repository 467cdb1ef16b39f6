"""Rules of every kind and a lane that stops, minute by minute."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragtide.drift.notify.annotations import AnnotationChannel
from ragtide.drift.notify.messages import enqueue
from ragtide.drift.settings import JobSettings, RuleOverride, WindowSettings
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.backtest.test_rules import ALL, MINUTES, RULES, minute
from tests.drift.world import MODEL, World, score_row
from tests.pins import recorded
from tests.pins.cli import backtest
from tests.pins.golden import check
from tests.pins.pinned import START, pinned_database

pytestmark = pytest.mark.clickhouse
EVALUATORS = {**ALL, MODEL.id: MODEL}
WINDOWS = WindowSettings(
    out_of_orderness_s=0, sizes_s=(60,), segments={"tenant": ("b",)}, heartbeat_timeout_s=10, stuck_wait_s=60
)
JOBS = JobSettings(reconcile_every_s=0.001)
STOPPED = 3  # the minute from which lane model writes nothing of `owed`


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    with pinned_database(clickhouse_server) as database:
        world = World(database, windows=WINDOWS, rules=RULES, evaluators=EVALUATORS, settings=JOBS, start=START)
        for number in range(MINUTES):
            world.store(minute(world, number))
            owed = world.scores(number * 60, [0.9] * 20, name=f"owed-{number}", app="owed")
            if number < STOPPED:
                scored = [
                    score_row(one.time, one.trace_id, {"near": 0.9}, evaluator="meaning", app="owed") for one in owed
                ]
                world.store(scored, "model", traces=False)
                world.progress((number + 1) * 60, lane="model")
            world.advance((number + 1) * 60)
        late = score_row(world.at(700), "late-1", {"good": 0.0}, app="shop")
        world.store([late])
        world.advance(MINUTES * 60 + 30)
        yield world


def test_what_the_jobs_wrote(world: World) -> None:
    for name, rows in (("events", recorded.events), ("problems", recorded.problems), ("verdicts", recorded.verdicts)):
        check("rules", name, rows(world.database, START))
    check("windows", "rules", recorded.windows(world.database, START))


def test_what_people_read(world: World) -> None:
    check("sentences", "rules", recorded.sentences(world.database, START))


def test_what_is_announced(world: World) -> None:
    enqueue(world.database, AnnotationChannel(), world.term.epoch, world.at(MINUTES * 60 + 60))
    check("rules", "messages", recorded.messages(world.database, START))
    check("sentences", "messages of rules", recorded.texts(world.database))


def test_what_a_backtest_finds(world: World, tmp_path: Path) -> None:
    running = {"windows": WINDOWS, "jobs": JOBS, "rules": RULES}
    args = (world.database, EVALUATORS, tmp_path, running)
    span = (START, world.at(MINUTES * 60))
    check("backtest", "rules, the same", backtest(*args, {"rules": RULES}, *span))
    overrides = (RuleOverride(metric="leak.passes", enabled=False), RuleOverride(metric="speed.seconds", max=2.0))
    other = RULES.model_copy(update={"overrides": overrides})
    check("backtest", "rules, others", backtest(*args, {"rules": other}, *span))
