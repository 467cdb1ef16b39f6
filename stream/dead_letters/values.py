"""Find the records of dead letters in the dead-letter topic, else at their original offsets."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from ragtide.evaluators.errors import Transient
from ragtide.stream.dead_letters.letters import Letter, RecordPosition, position_of
from ragtide.stream.ingest.records import Record
from ragtide.stream.ingest.sent_letter import read_letter
from ragtide.stream.kafka.batches import consumer_of
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts
from ragtide.stream.kafka.shutdown import stop_consumer
from ragtide.stream.replay.topic import TopicSource
from ragtide.stream.settings.sections import KafkaSettings

_POLL_MS = 1000
_POLLS = 10
Item = TypeVar("Item")


class RecordFinder:
    """Finds each record with its original topic, offset and timestamp, if its SHA-256 is the letter's.

    The dead-letter topic is read from its beginning, in no consumer group, and only as far as needed.
    """

    def __init__(self, kafka: KafkaSettings, *, batch_records: int) -> None:
        self._kafka = kafka
        self._records = batch_records

    async def read(self, letters: Sequence[Letter]) -> AsyncGenerator[Sequence[Record], None]:
        """Yield the records that still exist, in batches of one partition. Raises `Transient`."""
        missing = {letter.position: letter for letter in letters}
        known = await partition_counts(self._kafka) if missing else {}
        if self._kafka.dead_letter_topic in known:
            async with aclosing(self._read_dead_letter_topic(missing)) as batches:
                async for batch in batches:
                    yield batch
        there = {at: found for at, found in _by_partition(missing).items() if at.partition < known.get(at.topic, 0)}
        if there:
            async with aclosing(self._read_original_topics(there, missing)) as batches:
                async for batch in batches:
                    yield batch

    async def _read_dead_letter_topic(
        self, missing: dict[RecordPosition, Letter]
    ) -> AsyncGenerator[Sequence[Record], None]:
        topics = [self._kafka.dead_letter_topic]
        source = TopicSource(self._kafka, topics, None, ahead_s=0, late_s=0, batch_records=self._records)
        async with aclosing(source.read({})) as batches:
            async for batch in batches:
                found = _take_missing(_originals(batch.records), missing)
                for records in _by_partition({position_of(record): record for record in found}).values():
                    yield list(records.values())
                if not missing:
                    return

    async def _read_original_topics(
        self, there: dict[TopicPartition, dict[RecordPosition, Letter]], missing: dict[RecordPosition, Letter]
    ) -> AsyncGenerator[Sequence[Record], None]:
        """Read records one by one: they are too big for the dead-letter topic, or older than its retention."""
        consumer = consumer_of(self._kafka, group_id=None, enable_auto_commit=False, auto_offset_reset="earliest")
        try:
            await consumer.start()
            for at, positions in there.items():
                consumer.assign([at])
                for position in sorted(positions):
                    if found := _take_missing(await self._at(consumer, at, position.offset), missing):
                        yield found
        except KafkaError as error:
            raise Transient(f"{no_answer_message(self._kafka, error)}; the same command continues") from None
        finally:
            await stop_consumer(consumer)

    async def _at(self, consumer: AIOKafkaConsumer, at: TopicPartition, offset: int) -> Sequence[Record]:
        """The record at `offset`; if it was deleted, another one or none."""
        consumer.seek(at, offset)
        for _ in range(_POLLS):
            if found := (await consumer.getmany(at, timeout_ms=_POLL_MS, max_records=1)).get(at):
                return list(found)
        return ()


def find_record(kafka: KafkaSettings, letter: Letter) -> Record | None:
    """The record of one letter; None if it was deleted. Not to be called from an event loop."""

    async def first() -> Record | None:
        async with aclosing(RecordFinder(kafka, batch_records=1000).read([letter])) as batches:
            async for batch in batches:
                return batch[0]
        return None

    return asyncio.run(first())


def _originals(sent: Iterable[Record]) -> list[Record]:
    """The original records of messages of the dead-letter topic."""
    return [letter.record for one in sent if (letter := read_letter(one)) is not None]


def _take_missing(records: Iterable[Record], missing: dict[RecordPosition, Letter]) -> list[Record]:
    """Filter the records that are missing, each once, and remove them from `missing`."""
    return [record for record in records if _take_if_missing(record, missing)]


def _take_if_missing(record: Record, missing: dict[RecordPosition, Letter]) -> bool:
    position = position_of(record)
    letter = missing.get(position)
    if letter is None or sha256(record.value or b"").hexdigest() != letter.sha256:
        return False
    del missing[position]
    return True


def _by_partition(items: dict[RecordPosition, Item]) -> dict[TopicPartition, dict[RecordPosition, Item]]:
    found: dict[TopicPartition, dict[RecordPosition, Item]] = defaultdict(dict)
    for position, item in items.items():
        found[TopicPartition(position.topic, position.partition)][position] = item
    return found
