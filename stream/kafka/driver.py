"""Faust's Kafka transport, one event per fetched partition slice instead of one per record, commits done right.

Faust 0.15 spends 220 µs a record on event-loop churn and commits past records in flight (its issue 606). Here a slice
is one event, and a commit is the end of the acknowledged prefix of slices (`ragtide.stream.kafka.offsets`). The
overridden names are private to Faust and aiokafka: tests/stream/core/test_driver_contract.py fails when one of them
moves. Faust's types are of records, so that mypy reads none and knows no base class and no decorator of its.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import faust
from aiokafka import TopicPartition
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from ragtide.stream.ingest.records import Record
from ragtide.stream.kafka.batches import MEMORY_PER_HEADER
from ragtide.stream.kafka.consumer_thread import SliceConsumerThread, assignment_of
from ragtide.stream.kafka.end_offsets import readable_end
from ragtide.stream.kafka.offsets import Lag, OffsetTracker, Partition, Ticket
from ragtide.stream.settings.topics import TopicPattern

log = logging.getLogger(__name__)

_RECORD_OVERHEAD_BYTES = 400  # of a ConsumerRecord; key, value and headers aside
_HANDOVER_COMMIT_S = 3.0
_STALE_END_S = 10.0  # less than windows wait for what is out of order


class Slice:
    """Consecutive records of one partition: the unit of delivery and acknowledgement."""

    __slots__ = ("records", "ticket")

    def __init__(self, records: Sequence[Record], ticket: Ticket) -> None:
        self.records = records
        self.ticket = ticket


class SliceSchema(faust.Schema):  # type: ignore[misc]  # see above
    """Passes the slice on unchanged: the pipeline decodes records, and makes bad ones dead letters."""

    def loads_key(self, app: Any, message: Any, *, loads: Any = None, serializer: Any = None) -> None:
        """No key: a slice has many."""

    def loads_value(self, app: Any, message: Any, *, loads: Any = None, serializer: Any = None) -> Any:
        """The slice."""
        return message.value


class SliceConsumer(driver.Consumer):  # type: ignore[misc]  # see above
    """Delivers slices, keeps the bytes in flight bounded, commits the acknowledged prefix."""

    slice_records = 500
    slice_bytes = 4 << 20
    in_flight_bytes = 16 << 20
    largest_batch = 32 << 20  # bytes that a compressed batch may expand to
    paused_s = 0.0  # time in which nothing was fetched for want of room
    offset_resets = 0  # partitions that began before what was committed
    pattern: TopicPattern | None = None  # of topics to read; None: those that the agent names

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.offsets: OffsetTracker[TopicPartition] = OffsetTracker()
        self.draining = False  # nothing more is fetched once set
        self.ends: dict[TopicPartition, int] = {}  # as the brokers said while nothing was fetched
        self.stopped: set[str] = set()  # topics that are read no further
        self._stopped_at: dict[TopicPartition, int] = {}
        self._left_at: dict[TopicPartition, int] = {}  # what was committed of partitions that were given up
        self._room = asyncio.Event()
        super().__init__(*arguments, **named)

    def lags(self) -> dict[Partition, Lag]:
        """Lag of each assigned partition whose end is known; safe before the start."""
        consumer = self._thread._consumer
        assignment = assignment_of(consumer) if consumer else None
        found = ((partition, self.lag(partition)) for partition in (assignment.tps if assignment else ()))
        return {(partition.topic, partition.partition): lag for partition, lag in found if lag is not None}

    def lag(self, at: Partition) -> Lag | None:
        """Lag of a partition; None while its end is unknown or outdated.

        What was the end before it fell silent is still lag, but no lag would be a guess: windows closed by it.
        """
        partition = TopicPartition(*at)
        assignment = assignment_of(self._thread._consumer)
        state = assignment.state_value(partition) if assignment else None
        if state is None or not state.has_valid_position or state.highwater is None:
            return None
        oldest = self.offsets.oldest(partition)
        offset = state.position if oldest is None else oldest
        offset = min(offset, self._stopped_at.get(partition, offset))
        end = max(readable_end(state.highwater, state.lso), self.ends.get(partition, 0))
        waiting = max(0, end - offset)
        return Lag(offset, waiting) if waiting or _answered_recently(state) else None

    @property
    def coordinator_known(self) -> bool:
        """Whether the group's coordinator is known; False while no broker answers, True at the start."""
        consumer = self._thread._consumer
        coordinator = consumer._coordinator if consumer else None
        return self._thread.broker_reached and (coordinator is None or coordinator.coordinator_id is not None)

    @property
    def is_full(self) -> bool:
        """Whether fetching pauses because too many bytes are in flight."""
        return self.offsets.outstanding >= self.in_flight_bytes

    @property
    def under_pressure(self) -> bool:
        """Whether half of the limit of bytes in flight is used: time to finish some."""
        return self.offsets.outstanding * 2 >= self.in_flight_bytes

    def stop_topic(self, topic: str) -> bool:
        """Read and commit nothing more of the topic; False if nothing else is assigned."""
        self.stopped.add(topic)
        assignment = assignment_of(self._thread._consumer)
        assigned = assignment.tps if assignment else frozenset()
        for partition in (at for at in assigned if at.topic == topic):
            oldest = self.offsets.oldest(partition)
            self._stopped_at[partition] = assignment.state_value(partition).position if oldest is None else oldest
            self.offsets.abandon(partition)
        self._room.set()
        return any(partition.topic not in self.stopped for partition in assigned)

    def committed(self) -> dict[TopicPartition, int]:
        """Committed offsets by partition."""
        return dict(self._committed_offset)

    def _new_consumer_thread(self) -> SliceConsumerThread:
        return SliceConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Mapping[TopicPartition, list[Slice]]:
        if self.draining or self.is_full:
            await self._wait_for_room(timeout)
            return {}
        if self.stopped:
            active_partitions = {at for at in active_partitions or () if at.topic not in self.stopped}
            if not active_partitions:  # aiokafka would take none for all
                await asyncio.sleep(timeout)
                return {}
        fetched = await self._thread.getmany(active_partitions, timeout)
        assignment = assignment_of(self._thread._consumer)
        if fetched.assignment is not assignment or not self.flow_active:
            return {}  # read under an assignment that is gone; the next one begins at what is committed
        slices = {}
        for partition, records in fetched.records.items():
            if partition.topic in self.stopped:
                continue  # since this fetch began
            self._detect_reset(partition, records[0].offset)
            slices[partition] = list(self._slices(partition, assignment, records))
        for partition, offset in fetched.next_offsets.items():
            if partition.topic not in self.stopped:
                self.offsets.skip(partition, assignment, offset)
        return slices

    def _detect_reset(self, partition: TopicPartition, first: int) -> None:
        """Follow the broker's offsets if they are before the read or committed ones: the topic was created again.

        Faust would drop such records silently, and never commit them.
        """
        self._read_offset.pop(partition, None)
        committed = max(self._committed_offset[partition] or 0, self._left_at.pop(partition, 0))
        if first < committed:
            log.warning("%s/%d begins again at offset %d; %d was committed", *partition, first, committed)
            self.offset_resets += 1
            self._committed_offset[partition] = None
            self.offsets.forget([partition])

    def _slices(self, partition: TopicPartition, generation: object, records: Sequence[Any]) -> Iterator[Slice]:
        """Split `records` into slices of at most `slice_records` records and about `slice_bytes`."""
        start, filled = 0, 0
        for end, record in enumerate(records, 1):
            filled += _weight(record)
            if filled >= self.slice_bytes or end - start == self.slice_records or end == len(records):
                part = records[start:end]
                yield Slice(part, self.offsets.take(partition, generation, part[0].offset, part[-1].offset, filled))
                start, filled = end, 0

    async def _wait_for_room(self, timeout: float) -> None:
        began = time.monotonic()
        self._room.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._room.wait(), timeout)
        self.paused_s += time.monotonic() - began

    def _to_message(self, tp: TP, record: Slice) -> ConsumerMessage:
        last = record.records[-1]
        return ConsumerMessage(
            last.topic,
            last.partition,
            last.offset,
            last.timestamp / 1000.0,
            0,
            None,
            None,
            record,
            None,
            0,
            0,
            tp,
            generation_id=self.app.consumer_generation_id,
        )

    def ack(self, message: ConsumerMessage) -> bool:
        """Mark the message's slice as done; called by `event.ack()`, once per event."""
        message.acked = True
        self._unacked_messages.discard(message)
        self.offsets.acknowledge(message.value.ticket)
        if not self.draining and not self.is_full:
            self._room.set()
        return True

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TopicPartition]:
        return (p for p in self.offsets.partitions() if topics is None or p in topics or p.topic in topics)

    def _new_offset(self, tp: TP) -> int | None:
        return self.offsets.committable(tp)

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Nothing to do: inside a partition delivery is in order, and gaps hold no records."""

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Add topics that the pattern found to the agent: Faust delivers by known names."""
        for channel in self.app.topics:
            channel.topics = sorted({*channel.topics, *(partition.topic for partition in assigned)})
        await super().on_partitions_assigned(assigned, generation_id)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Commit what is done, then release the partitions; records in flight belong to the next owner."""
        try:
            await asyncio.wait_for(self.commit(), _HANDOVER_COMMIT_S)
        except TimeoutError:
            log.warning("no commit before the rebalance within %.0f s: its records are read again", _HANDOVER_COMMIT_S)
        self._left_at.update({at: self._committed_offset[at] for at in revoked if self._committed_offset[at]})
        self.offsets.forget(revoked)
        self._room.set()
        await super().on_partitions_revoked(revoked)

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Nothing: Faust's livelock warnings know nothing of slices; /live judges by commit progress."""


class SliceTransport(driver.Transport):  # type: ignore[misc]  # see above
    """The transport of the app."""

    Consumer = SliceConsumer


def _answered_recently(state: Any) -> bool:
    """aiokafka asks of every partition that has nothing left to hand over, in turns of a second or two."""
    return time.time() - (state.timestamp or 0) / 1000 < _STALE_END_S


def _weight(record: Any) -> int:
    """Memory of a record, in bytes; its headers may take far more than its value."""
    weight = record.serialized_value_size + max(0, record.serialized_key_size) + _RECORD_OVERHEAD_BYTES
    if record.headers:
        weight += sum(MEMORY_PER_HEADER + len(value or b"") for _, value in record.headers)
    return int(weight)
