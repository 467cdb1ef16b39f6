"""Reads a range of topics by offsets, in no consumer group: a live worker's place is never touched."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError

from evaluators.errors import ConfigError, Transient
from stream.kafka_client import client_options
from stream.pipeline import Period
from stream.replay import Batch
from stream.runs import Position
from stream.sections import KafkaSettings

log = logging.getLogger(__name__)

_POLL_MS = 1000


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

    async def read(self, position: Position) -> AsyncIterator[Batch]:
        """From `position` to the end of the range; `done` and `total` are offsets."""
        consumer = AIOKafkaConsumer(
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_bytes=max(self._kafka.max_record_bytes, 50 << 20),
            max_partition_fetch_bytes=self._kafka.max_record_bytes,
            **client_options(self._kafka),
        )
        try:
            await consumer.start()
            async for batch in self._read(consumer, position):
                yield batch
        except UnknownTopicOrPartitionError:
            raise self._unknown() from None
        except KafkaError as error:
            servers = self._kafka.bootstrap_servers
            raise Transient(f"Kafka at {servers}: {type(error).__name__}; the same command goes on here") from None
        finally:
            await consumer.stop()

    async def _read(self, consumer: AIOKafkaConsumer, position: Position) -> AsyncIterator[Batch]:
        begin, until, following = await self._range(consumer, position)
        total = sum(until[at] - begin[at] for at in until)
        consumer.assign(list(until))
        for at, offset in following.items():
            consumer.seek(at, offset)
        while True:
            open_ends = [at for at in until if following[at] < until[at]]
            done = sum(min(following[at], until[at]) - begin[at] for at in until)
            if not open_ends:
                yield Batch([], _position(begin, until, following), done, total)
                return
            fetched = await consumer.getmany(*open_ends, timeout_ms=_POLL_MS, max_records=self._records)
            records = [record for at, found in fetched.items() for record in found if record.offset < until[at]]
            for at in open_ends:
                following[at] = await consumer.position(at)  # past compacted records and transaction marks
            done = sum(min(following[at], until[at]) - begin[at] for at in until)
            yield Batch(records, _position(begin, until, following), done, total)

    async def _range(
        self, consumer: AIOKafkaConsumer, position: Position
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Where each partition begins, where it ends, and where to go on."""
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
            return begin, until, following
        found = [at for topic in self._topics for at in await self._partitions_of(consumer, topic)]
        begin = await consumer.beginning_offsets(found)
        until = await consumer.end_offsets(found)
        if self._period is not None:
            begin = await self._at(consumer, self._period.start_s - self._ahead_s, begin, until)
            until = await self._at(consumer, self._period.end_s + self._late_s, until, until)
        begin = {at: min(begin[at], until[at]) for at in found}
        return begin, dict(until), dict(begin)

    async def _partitions_of(self, consumer: AIOKafkaConsumer, topic: str) -> list[TopicPartition]:
        known = await consumer.topics()
        if topic not in known:
            raise self._unknown(topic)
        return [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic) or ())]

    def _unknown(self, topic: str = "") -> ConfigError:
        return ConfigError(
            f"Kafka at {self._kafka.bootstrap_servers} has no topic {topic or ', '.join(self._topics)}; "
            "give one with --topic, or set kafka.topics"
        )

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
        return {at: hit.offset if (hit := found.get(at)) is not None else ends[at] for at in otherwise}


def _said(second: float) -> str:
    if not 0 < second < float("inf"):
        return "the beginning" if second <= 0 else "the end"
    return datetime.fromtimestamp(second, UTC).isoformat(timespec="milliseconds")


def _position(
    begin: Mapping[TopicPartition, int], until: Mapping[TopicPartition, int], following: Mapping[TopicPartition, int]
) -> Position:
    return {"begin": _named(begin), "until": _named(until), "next": _named(following)}


def _named(offsets: Mapping[TopicPartition, int]) -> dict[str, int]:
    return {f"{at.topic}/{at.partition}": offset for at, offset in offsets.items()}


def _partitions(named: Mapping[str, int]) -> dict[TopicPartition, int]:
    return {TopicPartition(name.rpartition("/")[0], int(name.rpartition("/")[2])): at for name, at in named.items()}
