"""Checks of stored windows, and of the system itself, at the minutes where something changes."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ragtide.drift.checks.consumer_lag import ConsumerLag, GroupLag
from ragtide.drift.checks.error_budget import check_error_budgets
from ragtide.drift.checks.evaluator_errors import check_evaluator_errors
from ragtide.drift.checks.failure_rates import check_failure_rates
from ragtide.drift.checks.job_health import check_jobs
from ragtide.drift.checks.missing_data import LastTraffic, check_missing_data
from ragtide.drift.checks.storage import check_disks
from ragtide.drift.job_history import JobRun
from ragtide.drift.leadership import Term
from ragtide.drift.settings import JobSettings, WindowSettings
from ragtide.drift.windows.segments import SegmentValues
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.backtest.test_jobs import ALL, LOOKS, METRICS, OVER, RULES, minute
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
    last, done = LastTraffic(), 0
    with pinned_database(clickhouse_server) as database:
        world = World(database, windows=WINDOWS, rules=RULES, evaluators=ALL, start=START)
        for number in (*LOOKS, OVER):
            database.insert("windows", [row for at in range(done, number) for row in minute(world, at)])
            now, term, done = world.at(number * 60), world.term, number
            database.insert("watermarks", [WatermarkRow("fast", "rag.traces", now)])
            check_failure_rates(database, METRICS, RULES, 60, SegmentValues({}), term, now)
            check_evaluator_errors(database, ALL.values(), RULES, 60, term, now)
            check_error_budgets(database, METRICS, RULES, WINDOWS, term, now)
            check_missing_data(database, last, ALL.values(), RULES, 60, term, now, now)
        yield world


@pytest.fixture(scope="module")
def system(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    """Records that wait too long, jobs that fail and jobs that fall behind."""
    with pinned_database(clickhouse_server) as database:
        world, retention = World(database, start=START), ConsumerLag()
        for number, age in enumerate((3600.0, 4500.0, 6600.0, 4000.0, 2800.0)):
            waits = [GroupLag("ragtide-fast", "rag.traces", age, 7200.0)]
            retention.check(database, waits, RULES, world.term, world.at(number * 60))
        failing = [JobRun("watch", 1, world.at(second), 1.0, "no answer") for second in (300, 310, 320)]
        slow = [JobRun("drift", 1, world.at(second), 149.0, "") for second in range(0, HOUR, 150)]
        well = [JobRun("watch", 1, world.at(second), 1.0, "") for second in (330, 340, 350)]
        for runs, second, led_s in ((failing, 325, 60), (slow, HOUR, HOUR), (well, HOUR + 60, 60)):
            database.insert("job_history", runs)
            term = Term(1, world.at(second) - timedelta(seconds=led_s))
            check_jobs(database, {"watch": 10.0, "drift": 60.0}, JOBS, RULES, term, world.at(second))
        yield world


@pytest.fixture(scope="module")
def disk(clickhouse_server: EmbeddedClickHouse) -> Iterator[Database]:
    """A disk that is fuller than it may be, and one that is not: how full it is differs from machine to machine."""
    with pinned_database(clickhouse_server) as database:
        world = World(database, start=START)
        for number, limit in enumerate((0.0, 1.0)):
            rules = RULES.model_copy(update={"disk_limit": limit})
            check_disks(database, rules, world.term, world.at(number * 60))
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
