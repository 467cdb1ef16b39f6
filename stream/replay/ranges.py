"""Ranges of offsets, read in no consumer group: a live worker's place is never touched.

All partitions are fetched from at once, in the background, while what came is evaluated and the block before it is
stored. One thread decodes and evaluates, so that a replay takes as much of one core as there is, and no more than that
except for what models take.
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
    """Where each partition begins and where it ends, and where to go on; offsets."""

    begin: Mapping[TopicPartition, int]
    until: Mapping[TopicPartition, int]
    following: dict[TopicPartition, int]

    def open_ends(self) -> list[TopicPartition]:
        """Partitions with more to read."""
        return [at for at, end in self.until.items() if self.following[at] < end]

    def batch(self, records: Sequence[Record]) -> RecordBatch:
        """These records, and how far it is after them."""
        position = {"begin": _named(self.begin), "until": _named(self.until), "next": _named(self.following)}
        done = sum(min(self.following[at], end) - self.begin[at] for at, end in self.until.items())
        return RecordBatch(records, position, done, sum(end - self.begin[at] for at, end in self.until.items()))


def rewound(position: Position) -> Position:
    """From the beginning of the same range."""
    return {**position, "next": position.get("begin", {})}


async def counted_partitions(kafka: KafkaSettings, topics: Sequence[str]) -> Mapping[str, int]:
    """How many partitions each has of the topics that are named or match; raises `ConfigError` where one is missing."""
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
    """From `position`, else of what `settle` says, in batches of a partition; `done` and `total` are offsets."""
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
        asked = _resumed(position) if position.get("until") else await settle(consumer)
        await _skip_what_is_gone(consumer, asked)
        async with aclosing(_read(consumer, asked, batch_records)) as batches:
            async for batch in batches:
                yield batch
    except KafkaError as error:
        servers, kind = kafka.bootstrap_servers, type(error).__name__
        raise Transient(f"Kafka at {servers}: {kind}; once it is back, the same command goes on") from None
    finally:
        await stop_consumer(consumer)


async def _read(consumer: AIOKafkaConsumer, asked: Range, batch_records: int) -> AsyncGenerator[RecordBatch, None]:
    for at, offset in asked.following.items():
        consumer.seek(at, offset)
    while open_ends := asked.open_ends():
        fetched = await consumer.getmany(*open_ends, timeout_ms=POLL_MS, max_records=batch_records)
        for at in open_ends:
            asked.following[at] = await consumer.position(at)  # past compacted records and transaction marks
            if records := [record for record in fetched.get(at, ()) if _begins_before(record, asked.until[at])]:
                yield asked.batch(records)
    yield asked.batch([])


def _begins_before(record: Record, end: int) -> bool:
    """A batch that cannot be read begins with its first record, and stands at its last."""
    if record.offset < end:
        return True
    batch = unreadable_batch(record)
    return batch is not None and batch.first_offset < end


async def _skip_what_is_gone(consumer: AIOKafkaConsumer, asked: Range) -> None:
    kept = await consumer.beginning_offsets(list(asked.until))
    for at, first in kept.items():
        if asked.following[at] < min(first, asked.until[at]):
            gone = min(first, asked.until[at]) - asked.following[at]
            log.warning(
                "%s/%d: retention deleted %d records of the range; the replay continues after them",
                at.topic,
                at.partition,
                gone,
            )
            asked.following[at] = first


def _resumed(position: Position) -> Range:
    return Range(_partitions(position["begin"]), _partitions(position["until"]), _partitions(position["next"]))


def _named(offsets: Mapping[TopicPartition, int]) -> dict[str, int]:
    return {f"{at.topic}/{at.partition}": offset for at, offset in offsets.items()}


def _partitions(named: Mapping[str, int]) -> dict[TopicPartition, int]:
    return {TopicPartition(name.rpartition("/")[0], int(name.rpartition("/")[2])): at for name, at in named.items()}
