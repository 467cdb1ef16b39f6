"""Demos in simulated time: their own traffic, schedule, settings and jobs, the real model and the real engine.

Several play side by side as environments of one application, so that one round of the jobs serves them all.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.demo_faults import Bench
from ragtide.drift.jobs import JobContext
from ragtide.drift.leadership import elect
from ragtide.drift.problems.groups import group
from ragtide.drift.problems.store import load_problems
from ragtide.evaluators import registry
from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Lane
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import Block
from ragtide.stream.demo.application import ENVIRONMENT, Application
from ragtide.stream.demo.run import DemoOptions
from ragtide.stream.demo.schedule import Episode, Schedule
from ragtide.stream.demo.timeline import Timeline
from ragtide.stream.demo.traffic import Traffic
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.pipeline import Pipeline
from tests.drift.check_schedule import CheckSchedule
from tests.drift.world import Heartbeat
from tests.stream.demo.simulated_time import AtOnce, SimulatedLoop

_LANES: tuple[Lane, ...] = ("fast", "model")
_TOPIC = "rag.traces"
_LOOKS_EVERY_S = 1.0  # for the first score


@dataclass(frozen=True, slots=True)
class Said:
    """What the jobs said of a problem, `at_s` after the demo's first score."""

    at_s: float
    event: str
    metric: str
    aspect: str


@dataclass(frozen=True, slots=True)
class Played:
    """A demo's first fault, and what was said of problems from the first trace until a time after it."""

    options: DemoOptions
    episode: Episode
    traces: int
    judged: frozenset[str]  # metrics whose windows rules looked at before the fault
    said: Sequence[Said]  # in order of time
    groups: Mapping[str, Sequence[str]]  # metrics of problems without a parent, and those of their symptoms

    @property
    def levels(self) -> list[Said]:
        """What was said of the metrics' level, by which the demo's rules find its faults."""
        return [one for one in self.said if one.aspect == "level"]

    @property
    def early(self) -> list[Said]:
        """What was said before the fault."""
        return [one for one in self.said if one.at_s < self.episode.start_s]

    def when(self, *events: str) -> list[tuple[str, float]]:
        """Metric and time of what was said of levels in these words, by metric."""
        return sorted((one.metric, one.at_s) for one in self.levels if one.event in events)


def play(bench: Bench, database: Database, demos: Sequence[DemoOptions], *, after_s: float) -> list[Played]:
    """Each demo as `ragtide demo` plays it, until so long after its first fault.

    Their seeds must differ: ids of traces are drawn from them.
    """
    assert len({options.seed or 0 for options in demos}) == len(demos)
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(_play(_Stage(bench, database), demos, after_s))


class _Stage:
    """The topic, a worker for each lane, and the jobs."""

    def __init__(self, bench: Bench, database: Database) -> None:
        settings = bench.settings
        evaluators = with_encoder_thresholds(registry.load(), settings.evaluators)
        self.bench = bench
        self.database = database
        self.stored = 0  # of the records that were sent
        self._opened = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
        self._sent: list[StoredRecord] = []
        self._newest = self._opened
        self._sink = ClickHouseSink(database)
        resources = Resources(bench.encoder)
        plans = {lane: prepare(evaluators, settings.evaluators, lane, bench.encoder).prepared for lane in _LANES}
        self._workers = {lane: Pipeline(plan, resources, settings, lane=lane) for lane, plan in plans.items()}
        term = elect(database, "the only jobs")
        self._jobs = JobContext(database, evaluators, settings.windows, settings.rules, settings.jobs, term)
        self.checks = CheckSchedule(self._jobs, self._opened)

    def now(self) -> datetime:
        """The clock of everyone here."""
        return self._opened + timedelta(seconds=_seconds())

    def send(self, key: bytes, value: bytes) -> int:
        """The offset of the record."""
        at_ms = int(self.now().timestamp() * 1000)
        self._sent.append(StoredRecord(_TOPIC, 0, len(self._sent), at_ms, key, value))
        return len(self._sent) - 1

    def advance(self) -> None:
        """What was sent is stored, and a round of the jobs follows, with the checks that are due."""
        records = self._sent[self.stored :]
        self.stored = len(self._sent)
        block = Block()
        for worker in self._workers.values():
            done = worker.process(records)
            assert not done.dead, done.dead[0].detail
            self._newest = max(self._newest, done.newest or self._newest)
            block.extend(done.block)
        self._sink.write(block)
        beats = [Heartbeat(lane, _TOPIC, 0, lane, self._newest, self.stored, 0, self.now()) for lane in _LANES]
        self.database.insert("progress", beats)
        self._jobs.run_cycle(self.now())
        self.checks.run(self.now())


async def _play(stage: _Stage, demos: Sequence[DemoOptions], after_s: float) -> list[Played]:
    application = Application(stage.bench.index, stage.bench.encoder, AtOnce(), stage.now, _seconds)
    playing = [asyncio.create_task(_demo(stage, application, options, after_s)) for options in demos]
    while not all(one.done() for one in playing):
        await asyncio.sleep(stage.bench.settings.jobs.every_s)
        stage.advance()
    stage.checks.run_all(stage.now())
    return [_played(stage, one.result()) for one in playing]


@dataclass(frozen=True, slots=True)
class _Demo:
    """A demo that is over; its first score came at `began`."""

    options: DemoOptions
    episode: Episode
    environment: str
    began: datetime
    traces: int


def _played(stage: _Stage, demo: _Demo) -> Played:
    judged = _judged(stage.database, demo.environment, demo.began + timedelta(seconds=demo.episode.start_s))
    said = _said(stage.database, demo.environment, demo.began)
    groups = _groups(stage.database, demo.environment, stage.now())
    return Played(demo.options, demo.episode, demo.traces, judged, said, groups)


async def _demo(stage: _Stage, application: Application, options: DemoOptions, after_s: float) -> _Demo:
    """Begins at any place of a window, as the seed has it."""
    await asyncio.sleep(random.Random(f"begins {options.seed}").uniform(0, stage.bench.settings.windows.base_s))
    environment = f"{ENVIRONMENT}-{options.seed}"
    schedule = Schedule(options.fault, options.seed)
    episode = next(schedule.episodes())
    timeline = Timeline(schedule, options.data / f"{environment}.json", stage.now, _seconds)
    offsets: list[int] = []

    async def send(key: bytes, value: bytes) -> None:
        offsets.append(stage.send(key, _moved(value, environment)))

    traffic = Traffic(
        application,
        stage.bench.passages,
        send,
        rate=options.rate,
        seed=options.seed or 0,
        fault=timeline.fault,
    )
    sending = asyncio.create_task(traffic.run())
    while not offsets or stage.stored <= offsets[0]:
        await asyncio.sleep(_LOOKS_EVERY_S)
    timeline.begin()
    began = stage.now()
    await asyncio.sleep(episode.end_s + after_s)
    sending.cancel()
    await asyncio.wait([sending])
    return _Demo(options, episode, environment, began, traffic.sent)


def _moved(value: bytes, environment: str) -> bytes:
    """The trace as an application in another environment sends it."""
    before = f'"environment":"{ENVIRONMENT}"'.encode()
    assert value.count(before) == 1
    return value.replace(before, f'"environment":"{environment}"'.encode())


def _judged(database: Database, environment: str, before: datetime) -> frozenset[str]:
    rows = database.rows(
        "SELECT DISTINCT metric FROM verdicts FINAL WHERE environment = {environment:String} AND samples > 0 "
        "AND end <= {before:DateTime64(3, 'UTC')}",
        {"environment": environment, "before": before},
    )
    return frozenset(row["metric"] for row in rows)


def _said(database: Database, environment: str, began: datetime) -> list[Said]:
    rows = database.rows(
        "SELECT at, event, metric, aspect FROM problem_events FINAL "
        "WHERE environment = {environment:String} ORDER BY at, metric",
        {"environment": environment},
    )
    return [Said((row["at"] - began).total_seconds(), row["event"], row["metric"], row["aspect"]) for row in rows]


def _groups(database: Database, environment: str, now: datetime) -> dict[str, list[str]]:
    found = [one for one in load_problems(database) if one.environment == environment]
    groups = group(found, now)
    return {one.metric: sorted(each.metric for each in groups.symptoms_of(one)) for one in groups.fold(found)}


def _seconds() -> float:
    return asyncio.get_running_loop().time()
