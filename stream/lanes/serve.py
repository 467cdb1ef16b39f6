"""One lane at work in this process: its parts joined, watched, and taken apart again in order."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from evaluators.errors import Transient
from evaluators.resources import Resources
from evaluators.spec import Lane
from sinks.protocol import Sink
from sinks.refusal import write_or_set_aside
from sinks.rows import Block
from stream.kafka.app import build_app
from stream.kafka.brokers import check_topics, unanswered
from stream.kafka.offsets import Lag, Partition
from stream.lanes.agent import Processes, Work
from stream.lanes.backoff import delays
from stream.lanes.dead_letter_limit import DeadLetterLimit
from stream.lanes.dead_letters import DeadLetters
from stream.lanes.progress import LaneProgress, worker_name
from stream.lanes.writer import Writer
from stream.settings import Settings
from stream.telemetry.health import LaneHealth
from stream.telemetry.memory import show
from stream.telemetry.registry import Telemetry
from stream.telemetry.serving import TelemetryServer
from stream.topic_models import TopicModels

log = logging.getLogger(__name__)

_WATCH_S = 1.0
_WAITING_BLOCKS = 4  # enough that none is missed; what waits beyond them waits as records, which are smaller
_COMMIT_S = 5.0  # longest that the last commit may take, and the last dead letters
_STOP_S = 10.0  # longest that leaving the group may take

Task = asyncio.Task[None]


async def serve(
    settings: Settings,
    lane: Lane,
    pipeline: Processes,
    sink: Sink,
    stop: asyncio.Event,
    *,
    port: int,
    resources: Resources | None = None,
    topics: TopicModels | None = None,
) -> None:
    """Work until `stop` is set, then finish what was begun (for worker.drain_s at most) and commit what is done.

    Shows the memory of `resources` and how often `topics` were not read, where given. Raises `ConfigError` where a
    person must act; anything else is a bug. What was not committed is read again.
    """
    parts = LaneParts(settings, lane, pipeline, sink, port)
    if resources is not None:
        show(parts.telemetry, lane, resources, settings.evaluators)
    if topics is not None:
        topics.count_failures(parts.telemetry.topic_model_failures.labels(lane))
    async with parts.running() as tasks:
        stopping: Task = asyncio.create_task(_wait_for(stop), name="stop")
        ended, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if stopping not in ended:
            raise _why(ended)
        await parts.drain(tasks)


class LaneParts:
    """Everything that a running lane consists of. Make one where the event loop runs."""

    def __init__(self, settings: Settings, lane: Lane, pipeline: Processes, sink: Sink, port: int) -> None:
        worker = settings.worker
        self.telemetry = Telemetry()
        self.health = LaneHealth(time.monotonic, worker.live_after_s)
        self._settings = settings
        self._lane = lane
        self._sink = sink
        self._server = TelemetryServer(
            self.telemetry, self.health, settings.telemetry.host, port, setting="telemetry.port"
        )
        self._dead_letters = DeadLetters(settings.kafka, lane, random.Random()) if lane == "fast" else None
        self._progress = LaneProgress(lane, worker_name(lane), lambda: datetime.now(UTC))
        self._writer = Writer(
            partial(write_or_set_aside, sink),
            self.telemetry,
            block_rows=worker.block_rows,
            block_wait_s=worker.block_wait_ms / 1000,
            waiting_rows=_WAITING_BLOCKS * worker.block_rows,
            pressed=lambda: bool(self._app.consumer.pressed),
        )
        self._work = Work(
            lane,
            pipeline,
            self._writer,
            self._dead_letters,
            DeadLetterLimit(worker.dead_letter_ratio, worker.dead_letter_run),
            self._progress,
            self.telemetry,
            self._lag,
        )
        self._app = build_app(settings.kafka, worker, lane, self._work.offer)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[set[Task]]:
        """The parts at work, as tasks none of which ends in order; afterwards all are stopped."""
        await self._server.start()
        log.info("lane %s: telemetry at http://%s:%d", self._lane, self._settings.telemetry.host, self._server.port)
        work: dict[str, Coroutine[Any, Any, None]] = {
            "consumer": self._consume(),
            "evaluation": self._work.run(),
            "writer": self._writer.run(),
            "watch": self._watch(),
            "heartbeat": self._beat(),
        }
        tasks = {asyncio.create_task(part, name=name) for name, part in work.items()}
        try:
            yield tasks
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._stop()

    async def drain(self, tasks: set[Task]) -> None:
        """Begin nothing more; return once what was begun is stored and committed, or time is up."""
        consumer = self._app.consumer
        consumer.draining = True
        self._work.begin_no_more()
        deadline = time.monotonic() + self._settings.worker.drain_s
        while not self._work.idle and time.monotonic() < deadline:
            ended, _ = await asyncio.wait(tasks, timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
            if ended:
                raise _why(ended)
        if consumer.started:
            unheard = "the brokers take no commit: what was not committed is read again"
            await self._bounded(consumer.commit(), _COMMIT_S, unheard)
        log.info("lane %s: stopped in order%s", self._lane, "" if self._work.idle else ", with work left unfinished")

    async def _consume(self) -> None:
        await self._reach("brokers", partial(check_topics, self._settings.kafka))
        await self._reach("sink", partial(asyncio.to_thread, self._sink.check), once=True)
        if self._dead_letters is not None:
            await self._reach("brokers", self._dead_letters.start)
        self.health.waits_for("start", "waiting for partitions")
        await self._app.start()
        self.health.waits_for("start", None)
        log.info("lane %s: at work in group %s", self._lane, self._settings.kafka.group(self._lane))
        await self._app.wait_until_stopped()
        if self._app.crash_reason is not None:
            raise self._app.crash_reason

    async def _reach(self, what: str, attempt: Callable[[], Awaitable[str]], *, once: bool = False) -> None:
        """Try until it works (or only `once`: the writer goes on trying); `ConfigError` is for the caller."""
        for delay in delays(random.Random()):
            try:
                log.info("lane %s: %s", self._lane, await attempt())
            except Transient as error:
                log.warning("lane %s: %s", self._lane, error)
                self.health.waits_for("start", f"{what}: {error}")
                if not once:
                    await asyncio.sleep(delay)
                    continue
            return

    async def _watch(self) -> None:
        """Look at the parts every second: for /live, /ready and the gauges."""
        telemetry, consumer = self.telemetry, self._app.consumer
        paused_s, begun_anew = 0.0, 0
        while True:
            lags = consumer.lags()
            telemetry.fetch_paused_seconds.labels(self._lane).inc(consumer.paused_s - paused_s)
            telemetry.begun_anew.labels(self._lane).inc(consumer.begun_anew - begun_anew)
            paused_s, begun_anew = consumer.paused_s, consumer.begun_anew
            blocked, silent = self._writer.blocked_since is not None, not consumer.coordinated
            waits = any(lag.records for lag in lags.values()) or consumer.offsets.unacknowledged > 0
            self.health.observe(consumer.committed(), work_waits=waits, away=blocked or silent)
            self.health.waits_for("sink", "the sink takes no rows" if blocked else None)
            self.health.waits_for("brokers", unanswered(self._settings.kafka) if silent else None)
            telemetry.in_flight_bytes.labels(self._lane).set(consumer.offsets.outstanding)
            show_lags(telemetry, self._lane, lags, self._progress)
            await asyncio.sleep(_WATCH_S)

    async def _beat(self) -> None:
        """Progress of every assigned partition, idle or not; one at a time where the sink is slow."""
        while True:
            await asyncio.sleep(self._settings.worker.heartbeat_s)
            rows = self._progress.heartbeat(self._app.consumer.lags().items())
            if rows:
                await self._writer.store(Block(progress=rows))

    def _lag(self, at: Partition) -> Lag | None:
        lag: Lag | None = self._app.consumer.lag(at)
        return lag

    async def _stop(self) -> None:
        unheard = "the group was not left in order; its session runs out"
        await self._bounded(self._app.stop(), _STOP_S, unheard)
        if self._dead_letters is not None:
            unheard = "the brokers take no dead letters: their records are read again"
            await self._bounded(self._dead_letters.stop(), _COMMIT_S, unheard)
        await self._server.stop()

    async def _bounded(self, ending: Coroutine[Any, Any, object], seconds: float, unheard: str) -> None:
        """Waits so long for it, and leaves it then: Faust takes cancelling for the end of another commit, and waits."""
        task = asyncio.create_task(ending)
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            task.result()
        else:
            log.warning("lane %s: %s", self._lane, unheard)


def show_lags(telemetry: Telemetry, lane: Lane, lags: Mapping[Partition, Lag], progress: LaneProgress) -> None:
    """What waits in each partition, and how old it is; no age where nothing was worked off that would tell it."""
    telemetry.lag_records.clear()
    telemetry.lag_seconds.clear()
    for (topic, partition), lag in lags.items():
        telemetry.lag_records.labels(lane, topic, partition).set(lag.records)
        age_s = progress.age_s((topic, partition)) if lag.records else 0.0
        if age_s is not None:
            telemetry.lag_seconds.labels(lane, topic, partition).set(age_s)


async def _wait_for(stop: asyncio.Event) -> None:
    await stop.wait()


def _why(ended: set[Task]) -> BaseException:
    """The reason to stop: a person's concern before a bug."""
    errors = [task.exception() for task in ended if not task.cancelled()]
    found = [error for error in errors if error is not None]
    found.sort(key=lambda error: not isinstance(error, Exception))
    return found[0] if found else RuntimeError(f"ended by itself: {', '.join(task.get_name() for task in ended)}")
