"""Jobs run for whoever leads; one that raises is counted and logged, and the next one runs."""

import asyncio
import itertools
import logging
import signal
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ragtide.drift.job_history import RunResult, StopRequested, load_runs
from ragtide.drift.jobs import JobContext
from ragtide.drift.leadership import Term
from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.job_schedule import Job, cycle_job, job_schedule
from ragtide.stream.jobs_process import JobRunner, run_jobs
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.local.topics import create_topics
from ragtide.stream.settings.loader import Settings
from ragtide.stream.telemetry.health import JobHealth
from ragtide.stream.telemetry.registry import Telemetry
from tests.contracts.grafana_server import TOKEN, serving
from tests.drift.anomalies.window_fixture import DAY, START, WindowFixture, window
from tests.drift.checks.test_storage import WithoutTheRight
from tests.drift.jobs_process import jobs_process
from tests.drift.world import EVALUATORS, World
from tests.infra.kafka_node import KafkaNode

pytestmark = pytest.mark.clickhouse


class Leads:
    """A leadership that is told what it is."""

    def __init__(self, term: Term | None) -> None:
        self.now = term
        self.in_the_way = ""

    def start(self) -> None: ...

    def term(self) -> Term | None:
        return self.now

    def trouble(self) -> str:
        return self.in_the_way

    def stop(self) -> None: ...


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def scheduled(
    world: World, leads: Leads, clock: Clock, now: Callable[[], datetime] | None = None
) -> tuple[JobRunner, Telemetry, JobHealth]:
    telemetry, health, looks = Telemetry(), JobHealth(clock, 100, leads.trouble), itertools.count(120)
    made = JobRunner(
        Settings(),
        lambda: world.rules,
        EVALUATORS,
        world.database,
        leads,
        telemetry,
        health,
        now or (lambda: world.at(next(looks))),
        clock,
    )
    return made, telemetry, health


def count(telemetry: Telemetry, job: str, result: str) -> float:
    return telemetry.registry.get_sample_value("ragtide_job_runs_total", {"job": job, "result": result}) or 0.0


def test_a_job_that_raises_is_counted_and_the_next_one_runs(database: Database) -> None:
    world, clock = World(database), Clock()
    jobs, telemetry, health = scheduled(world, Leads(world.term), clock)

    def fails(error: Exception) -> Job:
        def job(jobs: JobContext, now: datetime) -> RunResult:
            raise error

        return job

    assert not jobs.run("watch", fails(ZeroDivisionError()))
    assert not jobs.run("watch", fails(Transient("the sink is away")))
    assert health.ready() == ["job watch: the sink is away"]
    assert count(telemetry, "watch", "failed") == 2
    assert database.rows("SELECT job FROM job_runs") == []
    clock.seconds = 101
    assert health.live() == ["no job finished for 101 s: job watch: the sink is away"]
    began = datetime.now(UTC).timestamp()
    world.scores(0, [0.9, 0.9])
    world.progress(90)
    assert jobs.run("watch", cycle_job(telemetry))
    assert [(one.failed, one.read, one.raised) for one in load_runs(database, world.start, most=9)] == [
        ("", 1, 0),
        ("the sink is away", None, None),
        ("ZeroDivisionError", None, None),
    ]
    assert count(telemetry, "watch", "done") == 1
    assert database.rows("SELECT job, epoch FROM job_runs") == [{"job": "watch", "epoch": world.term.epoch}]
    assert telemetry.registry.get_sample_value("ragtide_job_seconds_count", {"job": "watch"}) == 3
    assert health.live() == health.ready() == []
    assert telemetry.registry.get_sample_value("ragtide_jobs_leader") == 1
    done_at = telemetry.registry.get_sample_value("ragtide_job_last_success_timestamp_seconds", {"job": "watch"})
    assert done_at is not None
    assert done_at >= began


def test_every_job_of_the_schedule_does_its_work_and_is_recorded(database: Database) -> None:
    world = World(database)
    jobs, telemetry, _ = scheduled(world, Leads(world.term), Clock())
    world.scores(0, [0.2] * 40)
    world.progress(90)
    planned = [
        one
        for one in job_schedule(Settings(), database, telemetry, threading.Event().is_set)
        if one[0] not in ("retention", "stage_letters")  # they ask brokers
    ]
    names = [name for name, _, job in planned if jobs.run(name, job)]
    assert names == [name for name, _, _ in planned]
    assert {"watch", "insights", "explain", "flips", "storage", "dead_letters", "drift", "questions"} <= set(names)
    recorded = {one.job: one for one in load_runs(database, world.start, most=9)}
    assert recorded["drift"].raised == 0
    assert [name for name in names if recorded[name].read is None or recorded[name].raised is None] == []
    assert (recorded["watch"].read, recorded["failure_rates"].read, recorded["findings"].read) == (1, 1, 0)
    assert recorded["jobs"].read == names.index("jobs")  # the runs before its own


def test_a_right_that_is_missing_is_said_once_an_hour_and_is_a_problem(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    world, clock = World(WithoutTheRight(database.settings)), Clock()
    jobs, telemetry, _ = scheduled(world, Leads(world.term), clock)
    planned = {name: job for name, _, job in job_schedule(Settings(), database, telemetry, threading.Event().is_set)}
    caplog.set_level(logging.ERROR)
    for minute in (0, 1, 2, 59, 61):
        clock.seconds = 60 * minute
        assert not jobs.run("storage", planned["storage"])
    first, again = (record.getMessage() for record in caplog.records if record.name == "ragtide.stream.job_error_log")
    assert "GRANT SELECT ON system.disks" in first
    assert again == f"{first} (5 consecutive failures)"
    assert count(telemetry, "storage", "failed") == 5
    assert jobs.run("jobs", planned["jobs"])
    (problem,) = world.open()
    assert (problem.aspect, problem.segment_value) == ("jobs", "storage")
    assert "GRANT SELECT ON system.disks" in problem.attributes["reasons"][0]
    world.database.close()


def test_a_job_that_leaves_off_when_the_process_ends_is_neither_done_nor_failed(database: Database) -> None:
    world = World(database)
    jobs, telemetry, health = scheduled(world, Leads(world.term), Clock())

    def leaves_off(jobs: JobContext, now: datetime) -> RunResult:
        raise StopRequested("1 of 3 batches")

    assert not jobs.run("drift", leaves_off)
    assert load_runs(database, world.start, most=9) == []
    assert count(telemetry, "drift", "done") == count(telemetry, "drift", "failed") == 0
    assert health.ready() == ["the jobs are starting"]


def test_a_look_leaves_off_when_the_process_is_told_to_stop(database: Database) -> None:
    world, planted, stop = World(database), WindowFixture(database), threading.Event()
    jobs, telemetry, _ = scheduled(world, Leads(world.term), Clock())
    end = START + DAY + 6 * 3600
    times = range(end - 3600, end, 60)
    planted.store(window("quality.good", at, np.full(9, 0.9), version=0, size_s=60) for at in times)
    planted.close(end)
    (look,) = [job for name, _, job in job_schedule(Settings(), database, telemetry, stop.is_set) if name == "drift"]
    stop.set()
    assert not jobs.run("drift", look)
    stop.clear()
    assert jobs.run("drift", look)
    (done,) = load_runs(database, world.start, most=9)
    assert (done.failed, done.read) == ("", 1)


def test_changes_that_come_too_late_for_any_window_are_counted(database: Database) -> None:
    world, clock = World(database), Clock()
    jobs, telemetry, _ = scheduled(world, Leads(world.term), clock)
    world.scores(-100 * 86400, [0.5])
    world.progress(0)
    [watch] = [
        job
        for name, _, job in job_schedule(Settings(), database, telemetry, threading.Event().is_set)
        if name == "watch"
    ]
    for _ in range(2):
        assert jobs.run("watch", watch)
    assert telemetry.registry.get_sample_value("ragtide_window_marks_expired_total") == 1


def test_who_does_not_lead_does_nothing_and_is_well(database: Database) -> None:
    world, clock = World(database), Clock()
    jobs, telemetry, health = scheduled(world, Leads(None), clock)
    clock.seconds = 1000
    assert not jobs.run("watch", _never)
    assert database.rows("SELECT job FROM job_runs") == []
    assert telemetry.registry.get_sample_value("ragtide_job_seconds_count", {"job": "watch"}) is None
    assert health.live() == health.ready() == []
    assert telemetry.registry.get_sample_value("ragtide_jobs_leader") == 0


def test_where_nobody_can_be_elected_it_lives_and_is_not_ready(database: Database) -> None:
    world, clock, leads = World(database), Clock(), Leads(None)
    jobs, _, health = scheduled(world, leads, clock)
    leads.in_the_way = "no broker answers"
    clock.seconds = 1000
    assert not jobs.run("watch", _never)
    assert health.ready() == ["no broker answers"]
    assert health.live() == []


def test_a_new_term_begins_with_an_empty_memory(database: Database) -> None:
    world = World(database)
    leads = Leads(world.term)
    jobs, _, _ = scheduled(world, leads, Clock())
    seen: list[JobContext] = []

    def notes(jobs: JobContext, now: datetime) -> RunResult:
        seen.append(jobs)
        return RunResult(0, 0)

    jobs.run("watch", notes)
    jobs.run("watch", notes)
    world.elect()
    leads.now = world.term
    jobs.run("watch", notes)
    assert seen[0] is seen[1]
    assert seen[2] is not seen[0]
    assert seen[2].term is world.term


def test_a_job_that_runs_when_the_process_is_told_to_stop_is_finished_first(database: Database) -> None:
    world = World(database)
    jobs, _, _ = scheduled(world, Leads(world.term), Clock())
    begun, go_on, stop = threading.Event(), threading.Event(), threading.Event()

    def long(jobs: JobContext, now: datetime) -> RunResult:
        begun.set()
        assert go_on.wait(60)
        return RunResult(1, 0)

    working = threading.Thread(target=run_jobs, args=(jobs, [("long", 0.05, long)], stop))
    working.start()
    try:
        assert begun.wait(60)
        stop.set()
        working.join(0.5)
        assert working.is_alive(), "whoever waits for it would close the database under the job"
        assert database.rows("SELECT job FROM job_runs") == []
    finally:
        stop.set()
        go_on.set()
        working.join(60)
    assert not working.is_alive()
    assert database.rows("SELECT job FROM job_runs") == [{"job": "long"}]


def _never(jobs: JobContext, now: datetime) -> RunResult:
    raise AssertionError("does not lead")


@pytest.mark.broker
def test_the_jobs_process_opens_a_problem_and_ends_in_order(
    database: Database, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """As a user starts it: `ragtide jobs`, the evaluators that are installed, rules that change, Grafana, SIGTERM."""
    world = World(database)
    world.start = world.database.rows("SELECT toStartOfMinute(now('UTC')) - 120 AS at")[0]["at"]
    rules = tmp_path / "ragtide.toml"
    rules.write_text("[rules]\nmin_sample = 1000\n")

    def minute(number: int) -> None:
        world.scores(60 * number, [0.1] * 40, evaluator="groundedness", key="groundedness", lane="model")
        for lane in ("fast", "model"):
            world.progress(60 * (number + 1), lane=lane, heartbeat_s=110)

    minute(0)
    with serving() as grafana:
        variables = {"CONFIG": str(rules), "GRAFANA__URL": grafana.url, "GRAFANA__TOKEN": TOKEN}
        variables = {f"RAGTIDE_{name}": value for name, value in variables.items()}
        with jobs_process(database, broker.bootstrap, tmp_path / "log", **variables) as process:
            process.wait_for(lambda: database.rows("SELECT 1 FROM job_runs WHERE job = 'watch'"))
            [scored] = database.rows("SELECT sum(scored) AS n FROM windows FINAL WHERE size_s = 60 AND segment = ''")
            assert (scored["n"], world.problems()) == (40, [])
            rules.write_text("[rules]\nmin_sample = 30\n")
            minute(1)
            assert [p.metric for p in process.wait_for(world.open)] == ["groundedness.groundedness"]
            process.wait_for(lambda: grafana.state.annotations)
            assert process.asked("/live") == "ok\n"
            assert process.asked("/ready") == "ok\n"
            assert "ragtide_jobs_leader 1.0" in process.asked("/metrics")
            process.process.send_signal(signal.SIGTERM)
            assert process.process.wait(60) == 0, process.said()
        [announced] = grafana.state.annotations.values()
        assert "metric:groundedness.groundedness" in announced["tags"]


def test_the_jobs_process_is_not_ready_while_no_broker_answers(database: Database, tmp_path: Path) -> None:
    with jobs_process(database, "127.0.0.1:9", tmp_path / "log") as process:
        process.wait_for(lambda: "no broker answers at 127.0.0.1:9" in process.asked("/ready"))
        assert process.asked("/ready").startswith("no leader of the jobs can be elected")
        assert process.asked("/live") == "ok\n"


@pytest.mark.kafka
def test_a_jobs_topic_of_several_partitions_stops_the_process(
    database: Database, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic = f"jobs-{uuid.uuid4().hex[:8]}"
    asyncio.run(create_topics(kafka.bootstrap, {topic: 3}))
    with jobs_process(database, kafka.bootstrap, tmp_path / "log", topic=topic) as process:
        assert process.process.wait(60) == 2, process.said()
        assert f"jobs stopped: {topic} has 3 partitions and needs exactly 1" in process.said()
        assert "Traceback" not in process.said()
