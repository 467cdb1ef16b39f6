"""Reads a period of topics: every record whose broker timestamp may belong to it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

from aiokafka import AIOKafkaConsumer, TopicPartition

from ragtide.stream.kafka.end_offsets import end_offsets
from ragtide.stream.pipeline import Interval
from ragtide.stream.replay.loop import RecordBatch
from ragtide.stream.replay.ranges import POLL_MS, Range, counted_partitions, read_range, rewound
from ragtide.stream.replay.runs import Position
from ragtide.stream.settings.sections import KafkaSettings

_POLLS = 10


class TopicSource:
    """Every record whose broker timestamp may belong to the period; the pipeline keeps those whose event time does.

    `ahead_s` and `late_s` say how far event times may be ahead of, or behind, the broker's. Where the range ends is
    settled when it is first read and kept in the position, so that reading it again gives the same records.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Sequence[str],
        interval: Interval | None,
        *,
        ahead_s: float,
        late_s: float,
        batch_records: int,
    ) -> None:
        self._kafka = kafka
        self._topics = tuple(topics)
        self._interval = interval
        self._ahead_s = ahead_s
        self._late_s = late_s
        self._records = batch_records
        span = "" if interval is None else f" from {_said(interval.start_s)} to {_said(interval.end_s)}"
        self.description = f"topic {', '.join(self._topics)}{span}"
        self.identity = f"{self.description} ahead {ahead_s:g} late {late_s:g}"

    def rewound(self, position: Position) -> Position:
        """From the beginning of the same range."""
        return rewound(position)

    async def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
        """From `position` to the end of the range, in batches of a partition; `done` and `total` are offsets."""
        known = await counted_partitions(self._kafka, self._topics)
        found = [TopicPartition(topic, number) for topic, count in known.items() for number in range(count)]
        async with aclosing(read_range(self._kafka, found, position, self._range, self._records)) as batches:
            async for batch in batches:
                yield batch

    async def _range(self, consumer: AIOKafkaConsumer) -> Range:
        found = list(consumer.assignment())
        begin = await consumer.beginning_offsets(found)
        until = ends = await end_offsets(consumer, begin)
        if self._interval is not None:
            begin = await self._at(consumer, self._interval.start_s - self._ahead_s, begin, ends)
            last_s = self._interval.end_s + self._late_s
            until = await self._at(consumer, last_s, ends, ends)
            for at in found:
                if until[at] <= begin[at] < ends[at] and not await self._begins_at(consumer, at, until[at], last_s):
                    until[at] = ends[at]  # the embedded broker finds offset 0 for any time; the pipeline sorts it out
        begin = {at: min(begin[at], until[at]) for at in found}
        return Range(begin, until, dict(begin))

    async def _begins_at(self, consumer: AIOKafkaConsumer, at: TopicPartition, offset: int, second: float) -> bool:
        """Whether the record at `offset` is not older than `second`, as the broker said."""
        consumer.seek(at, offset)
        for _ in range(_POLLS):
            fetched = await consumer.getmany(at, timeout_ms=POLL_MS, max_records=1)
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
