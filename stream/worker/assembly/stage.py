"""The work of stage `assemble`: batches of spans to kafka.spans_topic, and from there traces to the topic of traces.

Both halves run in one group, slice by slice. A slice of batches is acknowledged once its spans are in
kafka.spans_topic. In that topic commits stay at the oldest trace that is not forgotten.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, Protocol

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.records import DeadLetter, Record, check_readable
from ragtide.stream.kafka.offsets import Lag, Partition, Ticket
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.worker.assembly.assembler import Assembled, Assembler, Output
from ragtide.stream.worker.assembly.messages import count_items, encode_sent
from ragtide.stream.worker.assembly.part_store import PartStore
from ragtide.stream.worker.assembly.rekeying import STAGE, TOO_LARGE, Rekeyed, rekey
from ragtide.stream.worker.dead_letter_limit import DeadLetterLimit, TooManyDeadLetters
from ragtide.stream.worker.processor import DeadLetterSender
from ragtide.stream.worker.progress import LaneProgress
from ragtide.stream.worker.slice_queue import SliceQueue

log = logging.getLogger(__name__)

LANE = "assemble"


class MessageSender(Protocol):
    """Interface of the producer."""

    async def send(self, topic: str, outputs: Sequence[Output], partition: int | None = None) -> list[Output]:
        """Return the messages that the topic never accepts once all others are acknowledged."""
        ...


class Consumer(Protocol):
    """What the stage asks of its consumer."""

    def lag(self, at: Partition) -> Lag | None:
        """Lag of a partition, if it is known."""
        ...

    def assigned(self) -> set[Partition]:
        """Partitions that slices come from."""
        ...

    def hold(self, at: Partition, ticket: Ticket, offset: int | None) -> None:
        """Let no commit of the partition pass the offset."""
        ...


class _Fed(NamedTuple):
    complete: list[Assembled]
    dead: list[DeadLetter]
    hold: int | None


@dataclass(slots=True)
class _PartitionWork:
    """The assembler of a partition since it was assigned, and what is left of its latest slice."""

    assembler: Assembler
    ticket: Ticket
    unfinished: "asyncio.Task[None] | None" = None


class AssemblyStage:
    """Takes slices of span topics and of kafka.spans_topic. `clock` gives seconds since 1970."""

    def __init__(
        self,
        kafka: KafkaSettings,
        otel: OtelSettings,
        sender: MessageSender,
        dead_letters: DeadLetterSender,
        limit: DeadLetterLimit,
        progress: LaneProgress,
        telemetry: Telemetry,
        consumer: Consumer,
        stop_topic: Callable[[str, TooManyDeadLetters], bool],
        clock: Callable[[], float],
    ) -> None:
        self._kafka = kafka
        self._otel = otel
        self._sender = sender
        self._dead_letters = dead_letters
        self._limit = limit
        self._progress = progress
        self._telemetry = telemetry
        self._consumer = consumer
        self._stop_topic = stop_topic
        self._clock = clock
        self._store = PartStore(otel.memory_bytes, otel.spill_directory)
        self._owners = count()
        self._partitions: dict[Partition, _PartitionWork] = {}
        self._logged: set[str] = set()
        self._tick_waits = False
        self.slices = SliceQueue(LANE, self._process)
        self.done: dict[Partition, int] = {}  # next offset by partition, as /live needs it

    def tick(self) -> None:
        """Complete what is due in partitions that are read to their end; call it every second or so."""
        if not self._tick_waits:
            self._tick_waits = True
            self.slices.submit(None)

    def close(self) -> None:
        """Release memory and disk."""
        self._store.close()

    async def _process(self, event: Any, executor: ThreadPoolExecutor) -> None:
        """Process a slice, or a tick (None)."""
        if event is None:
            self._tick_waits = False
            await self._look_at_idle(executor)
            return
        if not event.value.ticket.valid:
            return  # its partition is somebody else's by now
        records = event.value.records
        with self._telemetry.process_seconds.labels(LANE).time():
            if records[0].topic == self._kafka.spans_topic:
                await self._assemble(event, records, executor)
            else:
                await self._rekey(event, records, executor)
        last = records[-1]
        self.done[last.topic, last.partition] = last.offset + 1
        self._progress.advance((last.topic, last.partition), last, None, None)
        self._telemetry.records.labels(LANE).inc(len(records))

    async def _rekey(self, event: Any, records: Sequence[Record], executor: ThreadPoolExecutor) -> None:
        largest, loop = self._kafka.max_record_bytes, asyncio.get_running_loop()
        done = await loop.run_in_executor(executor, rekey, records, self._otel, largest)
        if not self._has_too_many_dead_letters(records, done.dead):
            self.slices.finish(self._finish_rekeying(event, done))

    def _has_too_many_dead_letters(self, records: Sequence[Record], dead: Sequence[DeadLetter]) -> bool:
        """Whether the topic of these records was stopped. Raises `TooManyDeadLetters` if no other one is read."""
        try:
            self._limit.check(records, dead)
        except TooManyDeadLetters as error:
            if self._stop_topic(records[0].topic, error):
                return True
            raise
        return False

    async def _finish_rekeying(self, event: Any, done: Rekeyed) -> None:
        too_large = await self._sender.send(self._kafka.spans_topic, done.outputs)
        if too_large:  # for the topic
            done.refused[TOO_LARGE] += sum(count_items(output.value) for output in too_large)
        await self._send_dead(done.dead)
        metrics = self._telemetry.spans
        metrics.read.inc(done.spans)
        for counts, metric in (
            (done.refused, metrics.refused),
            (done.skipped, metrics.skipped),
            (done.adjusted, metrics.adjusted),
        ):
            for reason, number in counts.items():
                metric.labels(reason).inc(number)
        for reason in sorted(done.refused.keys() - self._logged):
            self._logged.add(reason)
            log.warning("a span or log record cannot be read: %s; ragtide_spans_refused_total counts more", reason)
        event.ack()

    async def _assemble(self, event: Any, records: Sequence[Record], executor: ThreadPoolExecutor) -> None:
        at, ticket = (records[0].topic, records[0].partition), event.value.ticket
        loop = asyncio.get_running_loop()
        work = self._partitions.get(at)
        if work is None or work.ticket.generation is not ticket.generation:
            if work is not None:
                await loop.run_in_executor(executor, work.assembler.close)
            work = self._partitions[at] = _PartitionWork(self._new_assembler(at, records), ticket)
        work.ticket = ticket
        fed = await loop.run_in_executor(executor, self._feed, work.assembler, records)
        self._finish_in_order(at, work, fed, event.ack)

    def _new_assembler(self, at: Partition, records: Sequence[Record]) -> Assembler:
        lag = self._consumer.lag(at)
        end = records[-1].offset + 1 if lag is None else lag.offset + lag.records
        return Assembler(self._otel, self._store, self._owners, end)

    def _feed(self, assembler: Assembler, records: Sequence[Record]) -> _Fed:
        complete: list[Assembled] = []
        dead: list[DeadLetter] = []
        now_ms = self._now_ms()
        for record in records:
            try:
                check_readable(record)
                trace_id = (record.key or b"").decode(errors="replace")
                complete += assembler.feed(record.offset, min(record.timestamp, now_ms), trace_id, record.value)
            except BadRecord as bad:
                dead.append(DeadLetter(record, bad.reason, STAGE, bad.detail))
        return _Fed(complete, dead, assembler.hold)

    async def _look_at_idle(self, executor: ThreadPoolExecutor) -> None:
        """Move the clocks of partitions without traffic; let go of those that were given up."""
        loop, assigned = asyncio.get_running_loop(), self._consumer.assigned()
        for at, work in list(self._partitions.items()):
            if at not in assigned:
                del self._partitions[at]
                await loop.run_in_executor(executor, work.assembler.close)
                continue
            lag = self._consumer.lag(at)
            if lag is not None and not lag.records:
                complete = await loop.run_in_executor(executor, work.assembler.advance, self._now_ms())
                self._finish_in_order(at, work, _Fed(complete, [], work.assembler.hold), lambda: None)
        metrics = self._telemetry.spans
        metrics.open_traces.set(sum(work.assembler.open_traces for work in self._partitions.values()))
        metrics.waiting_bytes.labels("memory").set(self._store.memory_bytes)
        metrics.waiting_bytes.labels("disk").set(self._store.disk_bytes)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _finish_in_order(self, at: Partition, work: _PartitionWork, fed: _Fed, acknowledge: Callable[[], Any]) -> None:
        left_out, work.assembler.left_out = work.assembler.left_out, 0
        if left_out:
            self._telemetry.spans.left_out.labels("trace_too_large").inc(left_out)
        rest = self._finish_assembling(at, work.ticket, work.unfinished, fed, acknowledge)
        work.unfinished = self.slices.finish(rest)

    async def _finish_assembling(
        self,
        at: Partition,
        ticket: Ticket,
        before: "asyncio.Task[None] | None",
        fed: _Fed,
        acknowledge: Callable[[], Any],
    ) -> None:
        """Send traces, then the marks that they were sent, then let commits go on: after what was `before`."""
        if before is not None:
            await asyncio.wait({before})
            if before.cancelled() or before.exception() is not None:
                return  # which ends the stage
        too_big = await self._sender.send(
            self._otel.traces_topic, [output for one in fed.complete for output in one.outputs]
        )
        marks = [Output(one.trace_id.encode(), encode_sent(one.mark)) for one in fed.complete if one.mark is not None]
        await self._sender.send(at[0], marks, at[1])
        await self._send_dead(fed.dead)
        self._count(fed.complete, too_big)
        self._consumer.hold(at, ticket, fed.hold)
        acknowledge()

    def _count(self, complete: Sequence[Assembled], too_big: Sequence[Output]) -> None:
        metrics = self._telemetry.spans
        for one in complete:
            metrics.traces.labels(one.result).inc()
            if one.result == "late":
                metrics.left_out.labels("late").inc(one.items)
            for kind, number in one.counts.items():
                metrics.remarks.labels(kind).inc(number)
            for prefix, number in one.unmapped.items():
                metrics.unmapped.labels(prefix).inc(number)
        if too_big:
            metrics.traces.labels("too_big").inc(len(too_big))
            log.warning(
                "%d traces do not fit into topic %s: the first is %s, of %d bytes; raise kafka.max_record_bytes and "
                "max.message.bytes of the topic",
                len(too_big),
                self._otel.traces_topic,
                too_big[0].key.decode(errors="replace"),
                len(too_big[0].value),
            )

    async def _send_dead(self, letters: Sequence[DeadLetter]) -> None:
        if not letters:
            return
        await self._dead_letters.send(letters)
        for letter in letters:
            self._telemetry.dead_letters.labels(LANE, letter.stage, letter.reason).inc()
