"""Stage `assemble` in this process: start its parts, monitor them, and stop them in order."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.kafka.app import build_app
from ragtide.stream.kafka.beginning import begin_at_latest
from ragtide.stream.kafka.broker_check import check_topics, unreachable_message
from ragtide.stream.kafka.offsets import Lag, Partition, Ticket
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sections import CANONICAL, KafkaSettings
from ragtide.stream.telemetry.health import LaneHealth
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.telemetry.serving import TelemetryServer
from ragtide.stream.worker.assembly.sending import Sender
from ragtide.stream.worker.assembly.stage import LANE, AssemblyStage
from ragtide.stream.worker.dead_letter_limit import DeadLetterLimit, TooManyDeadLetters
from ragtide.stream.worker.dead_letters import DeadLetters
from ragtide.stream.worker.lane import export_lag
from ragtide.stream.worker.lifecycle import Task, end_within, reason_to_stop, retry_until_ready, wait_for_stop
from ragtide.stream.worker.progress import LaneProgress, worker_name

log = logging.getLogger(__name__)

_CREATE = "ragtide topics create --spans"
_WATCH_S = 1.0
_COMMIT_S = 5.0  # longest that the last commit may take, and the last messages
_STOP_S = 10.0  # longest that leaving the group may take
_ADVICE = (
    "Set otel.encodings for the topic, or the Collector's encoding to otlp_proto. To skip the messages, raise "
    "worker.dead_letter_ratio and worker.dead_letter_run: then they become dead letters."
)


async def run_assembly(settings: Settings, stop: asyncio.Event, *, port: int) -> None:
    """Run the stage until `stop` is set, then finish what is begun (for worker.drain_s at most) and commit it.

    Raises `ConfigError` where a person must act; anything else is a bug. What was not committed is read again.
    """
    parts = _AssemblyRuntime(settings, port)
    async with parts.started() as tasks:
        stopping: Task = asyncio.create_task(wait_for_stop(stop), name="stop")
        ended, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if stopping not in ended:
            raise reason_to_stop(ended)
        await parts.drain(tasks)


def topics_of_stage(settings: Settings) -> KafkaSettings:
    """The Kafka settings of the stage, whose topics are those that it reads; raise `ConfigError` for unfit ones."""
    kafka, otel = settings.kafka, settings.otel
    entry = kafka.entry_of(otel.traces_topic)
    if entry is None or kafka.decoders.get(entry, CANONICAL) != CANONICAL:
        raise ConfigError(
            f"otel.traces_topic = {otel.traces_topic}: no lane reads it as canonical traces; add it to kafka.topics "
            f"(now {', '.join(kafka.topics)}), without an entry in kafka.decoders"
        )
    read = (*otel.topics, *otel.log_topics)
    written = (kafka.spans_topic, otel.traces_topic, kafka.dead_letter_topic)
    if kafka.spans_topic in (otel.traces_topic, kafka.dead_letter_topic) or kafka.entry_of(kafka.spans_topic):
        raise ConfigError(
            f"kafka.spans_topic = {kafka.spans_topic} needs a topic of its own: lanes or people read this one"
        )
    if taken := sorted({*read} & {*written}):
        raise ConfigError(f"otel.topics and otel.log_topics name {', '.join(taken)}, which stage assemble writes")
    return kafka.model_copy(update={"topics": (*read, kafka.spans_topic), "decoders": {}})


class _AssemblyRuntime:
    """All parts of the running stage. Make one where the event loop runs."""

    def __init__(self, settings: Settings, port: int) -> None:
        worker = settings.worker
        self._settings = settings
        self._kafka = kafka = topics_of_stage(settings)
        self._telemetry = Telemetry()
        self._health = LaneHealth(time.monotonic, worker.live_after_s)
        self._server = TelemetryServer(
            self._telemetry, self._health, settings.telemetry.host, port, setting="telemetry.port"
        )
        self._dead_letters = DeadLetters(kafka, LANE, random.Random())
        self._sender = Sender(kafka, LANE, random.Random())
        self._progress = LaneProgress(LANE, worker_name(LANE), lambda: datetime.now(UTC))
        self._stage = AssemblyStage(
            kafka,
            settings.otel,
            self._sender,
            self._dead_letters,
            DeadLetterLimit(worker.dead_letter_ratio, worker.dead_letter_run, _ADVICE),
            self._progress,
            self._telemetry,
            self,
            self._stop_topic,
            time.time,
        )
        self._app = build_app(kafka, worker, LANE, self._stage.slices.submit)

    def lag(self, at: Partition) -> Lag | None:
        """Lag of a partition, if it is known."""
        found: Lag | None = self._app.consumer.lag(at)
        return found

    def assigned(self) -> set[Partition]:
        """Partitions that slices come from."""
        return {(at.topic, at.partition) for at in self._app.consumer.offsets.partitions()}

    def hold(self, at: Partition, ticket: Ticket, offset: int | None) -> None:
        """Let no commit of the partition pass the offset."""
        self._app.consumer.offsets.hold(at, ticket, offset)

    @asynccontextmanager
    async def started(self) -> AsyncIterator[set[Task]]:
        """Run the parts as tasks that never end in order; stop all on leaving."""
        await self._server.start()
        log.info("lane %s serves telemetry at http://%s:%d", LANE, self._settings.telemetry.host, self._server.port)
        work: dict[str, Coroutine[Any, Any, None]] = {
            "consumer": self._consume(),
            "assembly": self._stage.slices.run(),
            "watch": self._watch(),
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
        """Accept nothing more; return once all work in progress is sent and committed, or time is up."""
        consumer = self._app.consumer
        consumer.draining = True
        self._stage.slices.stop_accepting()
        deadline = time.monotonic() + self._settings.worker.drain_s
        while not self._stage.slices.is_idle and time.monotonic() < deadline:
            ended, _ = await asyncio.wait(tasks, timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
            if ended:
                raise reason_to_stop(ended)
        if consumer.started:
            warning = "the brokers did not accept the last commit; uncommitted records will be read again"
            await end_within(LANE, consumer.commit(), _COMMIT_S, warning)
        log.info(
            "lane %s stopped in order%s", LANE, "" if self._stage.slices.is_idle else ", with work left unfinished"
        )

    async def _consume(self) -> None:
        kafka, until_ready = self._kafka, partial(retry_until_ready, LANE, self._health)
        await until_ready("brokers", partial(check_topics, kafka, _CREATE))
        await until_ready("brokers", partial(check_topics, kafka.model_copy(update={"topics": self._written}), _CREATE))
        if kafka.start_at == "latest":
            await until_ready("brokers", partial(begin_at_latest, kafka, kafka.group(LANE)))
        await until_ready("brokers", self._dead_letters.start)
        await until_ready("brokers", self._sender.start)
        self._health.waits_for("start", "waiting for partitions")
        await self._app.start()
        self._health.waits_for("start", None)
        log.info("lane %s consumes as group %s", LANE, kafka.group(LANE))
        await self._app.wait_until_stopped()
        if self._app.crash_reason is not None:
            raise self._app.crash_reason

    @property
    def _written(self) -> tuple[str, ...]:
        return (self._settings.otel.traces_topic,)

    async def _watch(self) -> None:
        """Update /live, /ready and the gauges every second, and complete what is due in idle partitions."""
        telemetry, consumer = self._telemetry, self._app.consumer
        paused_s, offset_resets = 0.0, 0
        while True:
            lags = consumer.lags()
            telemetry.fetch_paused_seconds.labels(LANE).inc(consumer.paused_s - paused_s)
            telemetry.offset_resets_total.labels(LANE).inc(consumer.offset_resets - offset_resets)
            paused_s, offset_resets = consumer.paused_s, consumer.offset_resets
            silent = not consumer.coordinator_known
            waits = any(lag.records for (topic, _), lag in lags.items() if topic not in consumer.stopped)
            # Commits stay at the oldest trace that waits, so what was processed is the progress.
            self._health.observe(dict(self._stage.done), work_waits=waits, away=silent)
            self._health.waits_for("brokers", unreachable_message(self._kafka) if silent else None)
            telemetry.in_flight_bytes.labels(LANE).set(consumer.offsets.outstanding)
            export_lag(telemetry, LANE, lags, self._progress)
            if not consumer.draining:
                self._stage.tick()
            await asyncio.sleep(_WATCH_S)

    def _stop_topic(self, topic: str, error: TooManyDeadLetters) -> bool:
        """Read the topic no further, and go on with the others; False if there are no others with spans."""
        others = {*self._settings.otel.topics} - {topic} - self._app.consumer.stopped
        if not others or not self._app.consumer.stop_topic(topic):
            return False
        log.error("lane %s reads topic %s no further, and the other topics as before: %s", LANE, topic, error)
        self._health.waits_for(f"topic {topic}", f"topic {topic} is read no further: {error}")
        self._telemetry.topics_stopped.labels(LANE, topic).set(1)
        return True

    async def _stop(self) -> None:
        warning = "could not leave the group; its partitions move when the session times out"
        await end_within(LANE, self._app.stop(), _STOP_S, warning)
        warning = "the brokers did not accept the last messages; their spans will be read again"
        for client in (self._sender, self._dead_letters):
            await end_within(LANE, client.stop(), _COMMIT_S, warning)
        self._stage.close()
        await self._server.stop()
