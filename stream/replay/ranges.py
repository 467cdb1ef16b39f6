"""Read ranges of offsets without a consumer group: the offsets of live workers never change.

All partitions are fetched in the background while earlier records are evaluated and stored. One thread decodes and
evaluates, so that a replay takes one core, and what models take.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.stream.ingest.records import Record, unreadable_batch
from ragtide.stream.kafka.batches import consumer_of
from ragtide.stream.kafka.broker_check import partition_counts, topics_read
from ragtide.stream.kafka.end_offsets import ISOLATION
from ragtide.stream.kafka.shutdown import stop_consumer
from ragtide.stream.replay.loop import RecordBatch
from ragtide.stream.replay.runs import Position
from ragtide.stream.settings.sections import KafkaSettings

log = logging.getLogger(__name__)

POLL_MS = 1000


class Range(NamedTuple):
    """Offsets of each partition: first, end (exclusive) and next to read."""

    begin: Mapping[TopicPartition, int]
    until: Mapping[TopicPartition, int]
    following: dict[TopicPartition, int]

    def open_ends(self) -> list[TopicPartition]:
        """Partitions with more to read."""
        return [at for at, end in self.until.items() if self.following[at] < end]

    def batch(self, records: Sequence[Record]) -> RecordBatch:
        """These records with the position and progress after them."""
        position = {"begin": _named(self.begin), "until": _named(self.until), "next": _named(self.following)}
        done = sum(min(self.following[at], end) - self.begin[at] for at, end in self.until.items())
        return RecordBatch(records, position, done, sum(end - self.begin[at] for at, end in self.until.items()))


def rewind(position: Position) -> Position:
    """The position at the beginning of the same range."""
    return {**position, "next": position.get("begin", {})}


async def partition_counts_of(kafka: KafkaSettings, topics: Sequence[str]) -> Mapping[str, int]:
    """Number of partitions of each topic that is named or matches. Raises `ConfigError` if one is missing."""
    known = await partition_counts(kafka)
    topics = topics_read(kafka, known, topics)
    if missing := [topic for topic in topics if topic not in known]:
        raise ConfigError(
            f"Kafka at {kafka.bootstrap_servers} has no topic {', '.join(missing)}; "
            "give one with --topic, or set kafka.topics"
        )
    return {topic: known[topic] for topic in topics}


async def read_range(
    kafka: KafkaSettings,
    assigned: Sequence[TopicPartition],
    position: Position,
    settle: Callable[[AIOKafkaConsumer], Awaitable[Range]],
    batch_records: int,
) -> AsyncGenerator[RecordBatch, None]:
    """Yield batches of one partition from `position`, else from the range that `settle` returns."""
    consumer = consumer_of(
        kafka,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level=ISOLATION,
        fetch_max_bytes=max(kafka.max_record_bytes, 50 << 20),
        max_partition_fetch_bytes=kafka.max_record_bytes,
    )
    try:
        await consumer.start()
        consumer.assign(assigned)
        range_ = _saved_range(position) if position.get("until") else await settle(consumer)
        await _skip_deleted(consumer, range_)
        async with aclosing(_read(consumer, range_, batch_records)) as batches:
            async for batch in batches:
                yield batch
    except KafkaError as error:
        servers, kind = kafka.bootstrap_servers, type(error).__name__
        raise Transient(f"Kafka at {servers}: {kind}; once it is back, the same command continues") from None
    finally:
        await stop_consumer(consumer)


async def _read(consumer: AIOKafkaConsumer, range_: Range, batch_records: int) -> AsyncGenerator[RecordBatch, None]:
    for at, offset in range_.following.items():
        consumer.seek(at, offset)
    while open_ends := range_.open_ends():
        fetched = await consumer.getmany(*open_ends, timeout_ms=POLL_MS, max_records=batch_records)
        for at in open_ends:
            range_.following[at] = await consumer.position(at)  # past compacted records and transaction marks
            if records := [record for record in fetched.get(at, ()) if _begins_before(record, range_.until[at])]:
                yield range_.batch(records)
    yield range_.batch([])


def _begins_before(record: Record, end: int) -> bool:
    """An unreadable batch begins at its first record, and is represented at its last offset."""
    if record.offset < end:
        return True
    batch = unreadable_batch(record)
    return batch is not None and batch.first_offset < end


async def _skip_deleted(consumer: AIOKafkaConsumer, range_: Range) -> None:
    first_offsets = await consumer.beginning_offsets(list(range_.until))
    for at, first in first_offsets.items():
        if range_.following[at] < min(first, range_.until[at]):
            gone = min(first, range_.until[at]) - range_.following[at]
            log.warning(
                "%s/%d: retention deleted %d records of the range; the replay continues after them",
                at.topic,
                at.partition,
                gone,
            )
            range_.following[at] = first


def _saved_range(position: Position) -> Range:
    return Range(_partitions(position["begin"]), _partitions(position["until"]), _partitions(position["next"]))


def _named(offsets: Mapping[TopicPartition, int]) -> dict[str, int]:
    return {f"{at.topic}/{at.partition}": offset for at, offset in offsets.items()}


def _partitions(named: Mapping[str, int]) -> dict[TopicPartition, int]:
    return {TopicPartition(name.rpartition("/")[0], int(name.rpartition("/")[2])): at for name, at in named.items()}
