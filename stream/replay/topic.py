"""Reads a range of topics by offsets, in no consumer group: a live worker's place is never touched."""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from evaluators.errors import ConfigError, Transient
from stream.configuration.sections import KafkaSettings
from stream.ingest.records import Record
from stream.kafka.brokers import partitions
from stream.kafka.client import client_options
from stream.kafka.ends import ISOLATION, end_offsets
from stream.pipeline import Period
from stream.replay.loop import RecordBatch
from stream.replay.runs import Position

log = logging.getLogger(__name__)

_POLL_MS = 1000
_POLLS = 10


class _Range(NamedTuple):
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


class TopicSource:
    """Every record whose broker timestamp may belong to the period; the pipeline keeps those whose event time does.

    `ahead_s` and `late_s` say how far event times may be ahead of, or behind, the broker's. Where the range ends is
    settled when it is first read and kept in the position, so that reading it again gives the same records.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Sequence[str],
        period: Period | None,
        *,
        ahead_s: float,
        late_s: float,
        batch_records: int,
    ) -> None:
        self._kafka = kafka
        self._topics = tuple(topics)
        self._period = period
        self._ahead_s = ahead_s
        self._late_s = late_s
        self._records = batch_records
        span = "" if period is None else f" from {_said(period.start_s)} to {_said(period.end_s)}"
        self.description = f"topic {', '.join(self._topics)}{span}"
        self.identity = f"{self.description} ahead {ahead_s:g} late {late_s:g}"

    def rewound(self, position: Position) -> Position:
        """From the beginning of the same range."""
        return {**position, "next": position.get("begin", {})}

    async def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
        """From `position` to the end of the range, in batches of a partition; `done` and `total` are offsets."""
        found = await self._partitions()
        consumer = AIOKafkaConsumer(
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=ISOLATION,
            fetch_max_bytes=max(self._kafka.max_record_bytes, 50 << 20),
            max_partition_fetch_bytes=self._kafka.max_record_bytes,
            **client_options(self._kafka),
        )
        try:
            await consumer.start()
            consumer.assign(found)
            async with aclosing(self._read(consumer, position)) as batches:
                async for batch in batches:
                    yield batch
        except KafkaError as error:
            raise self._away(error) from None
        finally:
            await consumer.stop()

    async def _read(self, consumer: AIOKafkaConsumer, position: Position) -> AsyncGenerator[RecordBatch, None]:
        asked = await self._range(consumer, position)
        for at, offset in asked.following.items():
            consumer.seek(at, offset)
        while open_ends := asked.open_ends():
            fetched = await consumer.getmany(*open_ends, timeout_ms=_POLL_MS, max_records=self._records)
            for at in open_ends:
                asked.following[at] = await consumer.position(at)  # past compacted records and transaction marks
                if records := [record for record in fetched.get(at, ()) if record.offset < asked.until[at]]:
                    yield asked.batch(records)
        yield asked.batch([])

    async def _range(self, consumer: AIOKafkaConsumer, position: Position) -> _Range:
        if position.get("until"):
            begin, until = _partitions(position["begin"]), _partitions(position["until"])
            following = _partitions(position["next"])
            kept = await consumer.beginning_offsets(list(until))
            for at, first in kept.items():
                if following[at] < min(first, until[at]):
                    log.warning(
                        "%s/%d: %d records are gone by retention", at.topic, at.partition, first - following[at]
                    )
                    following[at] = first
            return _Range(begin, until, following)
        found = list(consumer.assignment())
        begin = await consumer.beginning_offsets(found)
        until = ends = await end_offsets(consumer, begin)
        if self._period is not None:
            begin = await self._at(consumer, self._period.start_s - self._ahead_s, begin, ends)
            last_s = self._period.end_s + self._late_s
            until = await self._at(consumer, last_s, ends, ends)
            for at in found:
                if until[at] <= begin[at] < ends[at] and not await self._begins_at(consumer, at, until[at], last_s):
                    until[at] = ends[at]  # the embedded broker finds offset 0 for any time; the pipeline sorts it out
        begin = {at: min(begin[at], until[at]) for at in found}
        return _Range(begin, until, dict(begin))

    async def _partitions(self) -> list[TopicPartition]:
        """Every partition of the topics; raises `ConfigError` where one is not there."""
        known = await partitions(self._kafka)
        if missing := [topic for topic in self._topics if topic not in known]:
            raise ConfigError(
                f"Kafka at {self._kafka.bootstrap_servers} has no topic {', '.join(missing)}; "
                "give one with --topic, or set kafka.topics"
            )
        return [TopicPartition(topic, number) for topic in self._topics for number in range(known[topic])]

    def _away(self, error: KafkaError) -> Transient:
        servers = self._kafka.bootstrap_servers
        return Transient(f"Kafka at {servers}: {type(error).__name__}; once it is back, the same command goes on")

    async def _begins_at(self, consumer: AIOKafkaConsumer, at: TopicPartition, offset: int, second: float) -> bool:
        """Whether the record at `offset` is not older than `second`, as the broker said."""
        consumer.seek(at, offset)
        for _ in range(_POLLS):
            fetched = await consumer.getmany(at, timeout_ms=_POLL_MS, max_records=1)
            for record in fetched.get(at, ()):
                return bool(record.timestamp >= second * 1000)
        return False

    async def _at(
        self,
        consumer: AIOKafkaConsumer,
        second: float,
        otherwise: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition at or after a broker time; where there is none, its end."""
        if second <= 0:
            return dict(otherwise)
        wanted = int(min(second, 253402300799.0) * 1000)
        found = await consumer.offsets_for_times(dict.fromkeys(otherwise, wanted))
        return {
            at: hit.offset if (hit := found.get(at)) is not None and hit.timestamp >= 0 else ends[at]
            for at in otherwise
        }


def _said(second: float) -> str:
    if not 0 < second < float("inf"):
        return "the beginning" if second <= 0 else "the end"
    return datetime.fromtimestamp(second, UTC).isoformat(timespec="milliseconds")


def _named(offsets: Mapping[TopicPartition, int]) -> dict[str, int]:
    return {f"{at.topic}/{at.partition}": offset for at, offset in offsets.items()}


def _partitions(named: Mapping[str, int]) -> dict[TopicPartition, int]:
    return {TopicPartition(name.rpartition("/")[0], int(name.rpartition("/")[2])): at for name, at in named.items()}
