"""Read fixed ranges of offsets: the same records whatever their times."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import NamedTuple, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.kafka.end_offsets import end_offsets
from ragtide.stream.replay.loop import RecordBatch
from ragtide.stream.replay.ranges import Range, partition_counts_of, read_range, rewind
from ragtide.stream.replay.runs import Position
from ragtide.stream.settings.sections import KafkaSettings

_FORM = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249}):(?P<partition>\d{1,9}):(?P<start>\d{1,18})-(?P<end>\d{1,18})", re.A
)


class OffsetRange(NamedTuple):
    """Offsets of one partition, from `start` on and before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse TOPIC:PARTITION:START-END; raise `ConfigError`."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ConfigError(
                f"{text!r} is no range of offsets; write TOPIC:PARTITION:START-END, e.g. rag.traces:0:500-900"
            )
        parsed = cls(found["topic"], *(int(found[name]) for name in ("partition", "start", "end")))
        if parsed.start >= parsed.end:
            raise ConfigError(f"{text!r} is empty: END is exclusive and must be greater than START")
        return parsed

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.start}-{self.end}"


class OffsetSource:
    """Every record of the ranges, one range per partition, in any order."""

    def __init__(self, kafka: KafkaSettings, ranges: Sequence[OffsetRange], *, batch_records: int) -> None:
        self._kafka = kafka
        self._ranges = {TopicPartition(each.topic, each.partition): each for each in sorted(ranges)}
        self._records = batch_records
        if len(self._ranges) < len(ranges):
            raise ConfigError("--offsets takes one range of each partition; give the others to runs of their own")
        self.description = self.identity = f"offsets {', '.join(map(str, self._ranges.values()))}"

    def rewind(self, position: Position) -> Position:
        """The position at the beginning of the same ranges."""
        return rewind(position)

    async def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
        """Yield batches of one partition from `position` to the end; `done` and `total` count offsets.

        Raises `ConfigError` if a range ends after the end of its partition.
        """
        known = await partition_counts_of(self._kafka, sorted({at.topic for at in self._ranges}))
        for at in self._ranges:
            if at.partition >= known[at.topic]:
                raise ConfigError(f"topic {at.topic} has no partition {at.partition}, but {known[at.topic]} from 0 on")
        found = list(self._ranges)
        async with aclosing(read_range(self._kafka, found, position, self._range, self._records)) as batches:
            async for batch in batches:
                yield batch

    async def _range(self, consumer: AIOKafkaConsumer) -> Range:
        ends = await end_offsets(consumer, await consumer.beginning_offsets(list(self._ranges)))
        for at, wanted in self._ranges.items():
            if wanted.end > ends[at]:
                raise ConfigError(f"{wanted} ends after its partition, which ends at {ends[at]} so far")
        begin = {at: wanted.start for at, wanted in self._ranges.items()}
        return Range(begin, {at: wanted.end for at, wanted in self._ranges.items()}, dict(begin))
