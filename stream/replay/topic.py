"""Read an interval of topics: every record whose broker timestamp may belong to it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

from aiokafka import AIOKafkaConsumer, TopicPartition

from ragtide.stream.kafka.end_offsets import end_offsets
from ragtide.stream.pipeline import Interval
from ragtide.stream.replay.loop import RecordBatch
from ragtide.stream.replay.ranges import POLL_MS, Range, partition_counts_of, read_range, rewind
from ragtide.stream.replay.runs import Position
from ragtide.stream.settings.sections import KafkaSettings

_POLLS = 10


class TopicSource:
    """Every record whose broker timestamp may belong to the interval; the pipeline keeps those whose event time does.

    Event times may be `ahead_s` ahead of the broker's, and `late_s` behind. The end of the range is fixed at the first
    read and saved in the position, so that reading it again gives the same records.
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
        interval_text = (
            "" if interval is None else f" from {_time_text(interval.start_s)} to {_time_text(interval.end_s)}"
        )
        self.description = f"topic {', '.join(self._topics)}{interval_text}"
        self.identity = f"{self.description} ahead {ahead_s:g} late {late_s:g}"

    def rewind(self, position: Position) -> Position:
        """The position at the beginning of the same range."""
        return rewind(position)

    async def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
        """Yield batches of one partition from `position` to the end; `done` and `total` count offsets."""
        known = await partition_counts_of(self._kafka, self._topics)
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
        """Whether the broker timestamp of the record at `offset` is `second` or later."""
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


def _time_text(second: float) -> str:
    if not 0 < second < float("inf"):
        return "the beginning" if second <= 0 else "the end"
    return datetime.fromtimestamp(second, UTC).isoformat(timespec="milliseconds")
