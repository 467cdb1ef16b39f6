"""One lane in this process: start its parts, monitor them, and stop them in order."""

import asyncio
import logging
import math
import random
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Lane
from ragtide.sinks.bisect import write_or_reject
from ragtide.sinks.protocol import Sink
from ragtide.sinks.rows import Block
from ragtide.stream.judge import JudgeClient
from ragtide.stream.judge_metrics import count_judge
from ragtide.stream.kafka.app import build_app
from ragtide.stream.kafka.beginning import begin_at_latest
from ragtide.stream.kafka.broker_check import check_topics, unreachable_message
from ragtide.stream.kafka.offsets import Lag, Partition
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sections import WorkerSettings
from ragtide.stream.telemetry.health import LaneHealth
from ragtide.stream.telemetry.memory import show
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.telemetry.serving import TelemetryServer
from ragtide.stream.topic_model_cache import TopicModelCache
from ragtide.stream.worker.dead_letter_limit import DeadLetterLimit, TooManyDeadLetters
from ragtide.stream.worker.dead_letters import DeadLetters
from ragtide.stream.worker.lifecycle import Task, end_within, reason_to_stop, retry_until_ready, wait_for_stop
from ragtide.stream.worker.processor import RecordProcessor, SliceProcessor
from ragtide.stream.worker.progress import LaneProgress, worker_name
from ragtide.stream.worker.writer import Writer

log = logging.getLogger(__name__)

_WATCH_S = 1.0
_PENDING_BLOCKS = 4  # enough that none is missed; what waits beyond them waits as records, which are smaller
_COMMIT_S = 5.0  # longest that the last commit may take, and the last dead letters
_STOP_S = 10.0  # longest that leaving the group may take


async def run_lane(
    settings: Settings,
    lane: Lane,
    pipeline: RecordProcessor,
    sink: Sink,
    stop: asyncio.Event,
    *,
    port: int,
    resources: Resources | None = None,
    topics: TopicModelCache | None = None,
) -> None:
    """Run the lane until `stop` is set, then drain (for worker.drain_s at most) and commit what is done.

    Shows the memory of `resources` and how often `topics` were not read, where given. Raises `ConfigError` where a
    person must act; anything else is a bug. What was not committed is read again.
    """
    parts = LaneRuntime(settings, lane, pipeline, sink, port)
    if resources is not None:
        show(parts.telemetry, lane, resources, settings.evaluators)
        if isinstance(resources.judge, JudgeClient):
            resources.judge.report_to(partial(count_judge, parts.telemetry))
    if topics is not None:
        topics.count_failures(parts.telemetry.topic_model_failures.labels(lane))
    async with parts.started() as tasks:
        stopping: Task = asyncio.create_task(wait_for_stop(stop), name="stop")
        ended, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if stopping not in ended:
            raise reason_to_stop(ended)
        await parts.drain(tasks)


class LaneRuntime:
    """All parts of a running lane. Make one where the event loop runs."""

    def __init__(self, settings: Settings, lane: Lane, pipeline: RecordProcessor, sink: Sink, port: int) -> None:
        worker = limits_of(settings, lane)
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
            partial(write_or_reject, sink),
            self.telemetry,
            block_rows=worker.block_rows,
            block_wait_s=worker.block_wait_ms / 1000,
            max_pending_rows=_PENDING_BLOCKS * worker.block_rows,
            under_pressure=lambda: bool(self._app.consumer.under_pressure),
        )
        self._processor = SliceProcessor(
            lane,
            pipeline,
            self._writer,
            self._dead_letters,
            DeadLetterLimit(worker.dead_letter_ratio, worker.dead_letter_run),
            self._progress,
            self.telemetry,
            self._lag,
            self._stop_topic,
        )
        self._app = build_app(settings.kafka, worker, lane, self._processor.submit)

    @asynccontextmanager
    async def started(self) -> AsyncIterator[set[Task]]:
        """Run the parts as tasks that never end in order; stop all on leaving."""
        await self._server.start()
        log.info(
            "lane %s serves telemetry at http://%s:%d", self._lane, self._settings.telemetry.host, self._server.port
        )
        work: dict[str, Coroutine[Any, Any, None]] = {
            "consumer": self._consume(),
            "evaluation": self._processor.run(),
            "writer": self._writer.run(),
            "watch": self._watch(),
            "heartbeat": self._heartbeat(),
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
        """Accept nothing more; return once all work in progress is stored and committed, or time is up."""
        consumer = self._app.consumer
        consumer.draining = True
        self._processor.stop_accepting()
        deadline = time.monotonic() + self._settings.worker.drain_s
        while not self._processor.is_idle and time.monotonic() < deadline:
            ended, _ = await asyncio.wait(tasks, timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
            if ended:
                raise reason_to_stop(ended)
        if consumer.started:
            warning = "the brokers did not accept the last commit; uncommitted records will be read again"
            await end_within(self._lane, consumer.commit(), _COMMIT_S, warning)
        log.info(
            "lane %s stopped in order%s", self._lane, "" if self._processor.is_idle else ", with work left unfinished"
        )

    async def _consume(self) -> None:
        kafka = self._settings.kafka
        until_ready = partial(retry_until_ready, self._lane, self.health)
        await until_ready("brokers", partial(check_topics, kafka))
        if kafka.start_at == "latest":
            await until_ready("brokers", partial(begin_at_latest, kafka, kafka.group(self._lane)))
        await until_ready("sink", partial(asyncio.to_thread, self._sink.check), once=True)
        if self._dead_letters is not None:
            await until_ready("brokers", self._dead_letters.start)
        self.health.waits_for("start", "waiting for partitions")
        await self._app.start()
        self.health.waits_for("start", None)
        log.info("lane %s consumes as group %s", self._lane, kafka.group(self._lane))
        await self._app.wait_until_stopped()
        if self._app.crash_reason is not None:
            raise self._app.crash_reason

    async def _watch(self) -> None:
        """Update /live, /ready and the gauges every second."""
        telemetry, consumer = self.telemetry, self._app.consumer
        paused_s, offset_resets = 0.0, 0
        while True:
            lags = consumer.lags()
            telemetry.fetch_paused_seconds.labels(self._lane).inc(consumer.paused_s - paused_s)
            telemetry.offset_resets_total.labels(self._lane).inc(consumer.offset_resets - offset_resets)
            paused_s, offset_resets = consumer.paused_s, consumer.offset_resets
            blocked, silent = self._writer.blocked_since is not None, not consumer.coordinator_known
            read = [lag for (topic, _), lag in lags.items() if topic not in consumer.stopped]
            waits = any(lag.records for lag in read) or consumer.offsets.unacknowledged > 0
            self.health.observe(consumer.committed(), work_waits=waits, away=blocked or silent)
            self.health.waits_for("sink", "the sink does not accept rows" if blocked else None)
            self.health.waits_for("brokers", unreachable_message(self._settings.kafka) if silent else None)
            telemetry.in_flight_bytes.labels(self._lane).set(consumer.offsets.outstanding)
            export_lag(telemetry, self._lane, lags, self._progress)
            await asyncio.sleep(_WATCH_S)

    async def _heartbeat(self) -> None:
        """Store the progress of every assigned partition, idle or not; one at a time while the sink is slow."""
        while True:
            await asyncio.sleep(self._settings.worker.heartbeat_s)
            lags, stopped = self._app.consumer.lags(), self._app.consumer.stopped
            # No window waits for a topic that is read no further.
            read = {at: lag._replace(records=0) if at[0] in stopped else lag for at, lag in lags.items()}
            rows = self._progress.heartbeat(read.items())
            if rows:
                await self._writer.store(Block(progress=rows))

    def _lag(self, at: Partition) -> Lag | None:
        lag: Lag | None = self._app.consumer.lag(at)
        return lag

    def _stop_topic(self, topic: str, error: TooManyDeadLetters) -> bool:
        """Read the topic no further, and go on with the others; False if there are none."""
        if not self._app.consumer.stop_topic(topic):
            return False
        log.error("lane %s reads topic %s no further, and the other topics as before: %s", self._lane, topic, error)
        self.health.waits_for(f"topic {topic}", f"topic {topic} is read no further: {error}")
        self.telemetry.topics_stopped.labels(self._lane, topic).set(1)
        return True

    async def _stop(self) -> None:
        warning = "could not leave the group; its partitions move when the session times out"
        await end_within(self._lane, self._app.stop(), _STOP_S, warning)
        if self._dead_letters is not None:
            warning = "the brokers did not accept the last dead letters; their records will be read again"
            await end_within(self._lane, self._dead_letters.stop(), _COMMIT_S, warning)
        await self._server.stop()


def limits_of(settings: Settings, lane: Lane) -> WorkerSettings:
    """Return the limits of a lane. Calls take seconds: the lane judge has smaller slices and more time for a commit."""
    worker, judge, sampling = settings.worker, settings.evaluators.judge, settings.sampling
    if lane != "judge":
        return worker
    share = sampling.highest_rate(lane)
    records = worker.slice_records if share == 0 else min(worker.slice_records, math.ceil(judge.slice_traces / share))
    one_trace_s = max((endpoint.trace_timeout_s for endpoint in judge.endpoints.values()), default=0.0)
    return worker.model_copy(update={"slice_records": records, "live_after_s": worker.live_after_s + one_trace_s})


def export_lag(telemetry: Telemetry, lane: str, lags: Mapping[Partition, Lag], progress: LaneProgress) -> None:
    """Export the lag of each partition in records and seconds; no seconds before its first processed record."""
    telemetry.lag_records.clear()
    telemetry.lag_seconds.clear()
    for (topic, partition), lag in lags.items():
        telemetry.lag_records.labels(lane, topic, partition).set(lag.records)
        age_s = progress.age_s((topic, partition)) if lag.records else 0.0
        if age_s is not None:
            telemetry.lag_seconds.labels(lane, topic, partition).set(age_s)
