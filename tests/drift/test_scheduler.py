"""Jobs run for whoever leads; one that raises is counted and logged, and the next one runs."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from drift.jobs import Jobs
from drift.leadership import Term
from evaluators.errors import Transient
from sinks.clickhouse.database import Database
from stream.local.broker import EmbeddedBroker
from stream.scheduler import JobHealth, Scheduled
from stream.settings import Settings
from stream.telemetry.registry import Telemetry
from tests.drift.world import EVALUATORS, World

pytestmark = pytest.mark.clickhouse


class Leads:
    """A leadership that is told what it is."""

    def __init__(self, term: Term | None) -> None:
        self.now = term

    def start(self) -> None: ...

    def term(self) -> Term | None:
        return self.now

    def stop(self) -> None: ...


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def scheduled(world: World, leads: Leads, clock: Clock) -> tuple[Scheduled, Telemetry, JobHealth]:
    telemetry, health = Telemetry(), JobHealth(clock, 100)
    made = Scheduled(Settings(), EVALUATORS, world.database, leads, telemetry, health, lambda: world.at(60))
    return made, telemetry, health


def count(telemetry: Telemetry, job: str, result: str) -> float:
    return telemetry.registry.get_sample_value("ragwatch_job_runs_total", {"job": job, "result": result}) or 0.0


def test_a_job_that_raises_is_counted_and_the_next_one_runs(database: Database) -> None:
    world, clock = World(database), Clock()
    jobs, telemetry, health = scheduled(world, Leads(world.term), clock)

    def fails(error: Exception) -> Callable[[Jobs, datetime], object]:
        def job(jobs: Jobs, now: datetime) -> object:
            raise error

        return job

    assert not jobs.run("watch", fails(ZeroDivisionError()))
    assert not jobs.run("watch", fails(Transient("the sink is away")))
    assert health.ready() == ["job watch: the sink is away"]
    assert count(telemetry, "watch", "failed") == 2
    clock.seconds = 101
    assert health.live() == ["no job finished for 101 s: job watch: the sink is away"]
    assert jobs.run("watch", Jobs.watch)
    assert count(telemetry, "watch", "done") == 1
    assert telemetry.registry.get_sample_value("ragwatch_job_seconds_count", {"job": "watch"}) == 3
    assert health.live() == health.ready() == []
    assert telemetry.registry.get_sample_value("ragwatch_jobs_leader") == 1


def test_who_does_not_lead_does_nothing_and_is_well(database: Database) -> None:
    world, clock = World(database), Clock()
    jobs, telemetry, health = scheduled(world, Leads(None), clock)
    clock.seconds = 1000
    assert not jobs.run("watch", _never)
    assert telemetry.registry.get_sample_value("ragwatch_job_seconds_count", {"job": "watch"}) is None
    assert health.live() == health.ready() == []
    assert telemetry.registry.get_sample_value("ragwatch_jobs_leader") == 0


def test_a_new_term_begins_with_an_empty_memory(database: Database) -> None:
    world = World(database)
    leads = Leads(world.term)
    jobs, _, _ = scheduled(world, leads, Clock())
    seen: list[Jobs] = []
    jobs.run("watch", lambda j, now: seen.append(j))
    jobs.run("watch", lambda j, now: seen.append(j))
    world.elect()
    leads.now = world.term
    jobs.run("watch", lambda j, now: seen.append(j))
    assert seen[0] is seen[1]
    assert seen[2] is not seen[0]
    assert seen[2].term is world.term


def _never(jobs: Jobs, now: datetime) -> object:
    raise AssertionError("does not lead")


@pytest.mark.broker
def test_the_jobs_process_opens_a_problem_and_ends_in_order(
    database: Database, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """As a user starts it: `ragwatch jobs`, the evaluators that are installed, SIGTERM."""
    world = World(database)
    world.start = world.database.rows("SELECT toStartOfMinute(now('UTC')) - 120 AS at")[0]["at"]
    world.scores(0, [0.1] * 40, evaluator="groundedness", key="groundedness", lane="model")
    for lane in ("fast", "model"):
        world.progress(60, lane=lane, heartbeat_s=110)
    name = uuid.uuid4().hex[:8]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAGWATCH_")} | {
        "RAGWATCH_KAFKA__BOOTSTRAP_SERVERS": broker.bootstrap,
        "RAGWATCH_KAFKA__JOBS_TOPIC": f"jobs-{name}",
        "RAGWATCH_KAFKA__GROUP_PREFIX": f"ragwatch-{name}",
        "RAGWATCH_CLICKHOUSE__URL": database.settings.url,
        "RAGWATCH_CLICKHOUSE__PASSWORD": database.settings.password.get_secret_value(),
        "RAGWATCH_CLICKHOUSE__USER": database.settings.user,
        "RAGWATCH_CLICKHOUSE__DATABASE": database.settings.database,
        "RAGWATCH_TELEMETRY__JOBS_PORT": "0",
        "RAGWATCH_JOBS__EVERY_S": "1",
        "RAGWATCH_WINDOWS__OUT_OF_ORDERNESS_S": "0",
        "RAGWATCH_RULES__K": "1",
    }
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "stream.cli", "jobs"], env=environment, stderr=out, stdout=out
        )
    try:
        problems: list[Any] = _wait(lambda: world.open(), process, log)
        assert [p.metric for p in problems] == ["groundedness.groundedness"]
        port = re.findall(r"telemetry on port (\d+)", log.read_text())[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/live", timeout=10) as answer:
            assert answer.read() == b"ok\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert b"ragwatch_jobs_leader 1.0" in answer.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait(10)


def _wait(found: Callable[[], list[Any]], process: subprocess.Popen[bytes], log: Path) -> list[Any]:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        result = found()
        if result:
            return result
        time.sleep(0.2)
    raise AssertionError(log.read_text())
