"""Checks of stored windows, and of the system itself, at the minutes where something changes."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ragtide.drift.checks.consumer_lag import ConsumerLag, GroupLag
from ragtide.drift.checks.disks import Disks
from ragtide.drift.checks.error_budget import ErrorBudgets
from ragtide.drift.checks.evaluator_errors import EvaluatorErrors
from ragtide.drift.checks.failure_rates import FailureRates
from ragtide.drift.checks.job_health import JobFailures, JobsBehind
from ragtide.drift.checks.missing_data import MissingData
from ragtide.drift.job_history import JobRun
from ragtide.drift.leadership import Term
from ragtide.drift.settings import JobSettings, WindowSettings
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.backtest.test_jobs import ALL, LOOKS, OVER, RULES, minute
from tests.drift.world import World
from tests.pins import recorded
from tests.pins.cli import backtest
from tests.pins.golden import check
from tests.pins.pinned import START, pinned_database

pytestmark = pytest.mark.clickhouse
WINDOWS = WindowSettings(out_of_orderness_s=0, sizes_s=(3600,))
JOBS = JobSettings(failing_runs=3)
HOUR = 3600


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    missing, done = MissingData(), 0
    with pinned_database(clickhouse_server) as database:
        world = World(database, windows=WINDOWS, rules=RULES, evaluators=ALL, start=START)
        for number in (*LOOKS, OVER):
            database.insert("windows", [row for at in range(done, number) for row in minute(world, at)])
            done = number
            database.insert("watermarks", [WatermarkRow("fast", "rag.traces", world.at(number * 60))])
            for check in (FailureRates(), EvaluatorErrors(), ErrorBudgets(), missing):
                world.check(check, world.at(number * 60))
        yield world


@pytest.fixture(scope="module")
def system(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    """Records that wait too long, jobs that fail and jobs that fall behind."""
    with pinned_database(clickhouse_server) as database:
        world = World(database, rules=RULES, start=START)
        waits: list[GroupLag] = []
        lag = ConsumerLag(lambda: waits)
        for number, age in enumerate((3600.0, 4500.0, 6600.0, 4000.0, 2800.0)):
            waits[:] = [GroupLag("ragtide-fast", "rag.traces", age, 7200.0)]
            world.check(lag, world.at(number * 60))
        failing = [JobRun("watch", 1, world.at(second), 1.0, "no answer") for second in (300, 310, 320)]
        slow = [JobRun("drift", 1, world.at(second), 149.0, "") for second in range(0, HOUR, 150)]
        well = [JobRun("watch", 1, world.at(second), 1.0, "") for second in (330, 340, 350)]
        for runs, second, led_s in ((failing, 325, 60), (slow, HOUR, HOUR), (well, HOUR + 60, 60)):
            database.insert("job_history", runs)
            term = Term(1, world.at(second) - timedelta(seconds=led_s))
            for check in (JobFailures, JobsBehind):
                world.check(check({"watch": 10.0, "drift": 60.0}), world.at(second), term=term, jobs=JOBS)
        yield world


@pytest.fixture(scope="module")
def disk(clickhouse_server: EmbeddedClickHouse) -> Iterator[Database]:
    """A disk that is fuller than it may be, and one that is not: how full it is differs from machine to machine."""
    with pinned_database(clickhouse_server) as database:
        world = World(database, start=START)
        for number, limit in enumerate((0.0, 1.0)):
            rules = RULES.model_copy(update={"disk_limit": limit})
            world.check(Disks(), world.at(number * 60), rules)
        yield database


def test_what_the_jobs_wrote(world: World, system: World) -> None:
    for name, one in (("windows", world), ("system", system)):
        check("jobs", f"events of {name}", recorded.events(one.database, START))
        check("jobs", f"problems of {name}", recorded.problems(one.database, START))


def test_a_disk(disk: Database) -> None:
    rows = disk.rows("SELECT event, episode, kind, aspect, segment, event_id FROM problem_events FINAL ORDER BY at")
    check("jobs", "disk", (" ".join(map(str, row.values())) for row in rows))


def test_what_people_read(world: World, system: World, disk: Database) -> None:
    check("sentences", "jobs, of windows", recorded.sentences(world.database, START))
    check("sentences", "jobs, of the system", recorded.sentences(system.database, START))
    first, *_ = recorded.sentences(disk, START)
    words = [word if not any(map(str.isdigit, word)) else "N" for word in first.split()]
    check("sentences", "jobs, of a disk", [" ".join(words)])


def test_what_a_backtest_finds(world: World, tmp_path: Path) -> None:
    running = {"windows": WINDOWS, "rules": RULES}
    span = (START, world.at(OVER * 60))
    check("backtest", "jobs", backtest(world.database, ALL, tmp_path, running, {"rules": RULES}, *span))
