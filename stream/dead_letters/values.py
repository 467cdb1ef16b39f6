"""Finds the records that dead letters are about: in the dead-letter topic, and what is not there where it first lay."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from ragtide.evaluators.errors import Transient
from ragtide.stream.dead_letters.letters import Letter, Place, place_of
from ragtide.stream.ingest.header_names import restore_names
from ragtide.stream.ingest.records import Record, StoredRecord
from ragtide.stream.kafka.batches import consumer_of
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts
from ragtide.stream.kafka.shutdown import stop_consumer
from ragtide.stream.replay.topic import TopicSource
from ragtide.stream.settings.sections import KafkaSettings

_POLL_MS = 1000
_POLLS = 10
Item = TypeVar("Item")


class Values:
    """Gives each record as it first lay (topic, offset, broker's timestamp), where its SHA-256 is the letter's.

    The dead-letter topic is read from its beginning, in no consumer group, and only as far as needed.
    """

    def __init__(self, kafka: KafkaSettings, *, batch_records: int) -> None:
        self._kafka = kafka
        self._records = batch_records

    async def read(self, letters: Sequence[Letter]) -> AsyncGenerator[Sequence[Record], None]:
        """What can be found, in batches of one partition; what is in none is gone. Raises `Transient`."""
        missing = {letter.place: letter for letter in letters}
        known = await partition_counts(self._kafka) if missing else {}
        if self._kafka.dead_letter_topic in known:
            async with aclosing(self._set_aside(missing)) as batches:
                async for batch in batches:
                    yield batch
        there = {at: found for at, found in _by_partition(missing).items() if at.partition < known.get(at.topic, 0)}
        if there:
            async with aclosing(self._where_it_lay(there, missing)) as batches:
                async for batch in batches:
                    yield batch

    async def _set_aside(self, missing: dict[Place, Letter]) -> AsyncGenerator[Sequence[Record], None]:
        topics = [self._kafka.dead_letter_topic]
        source = TopicSource(self._kafka, topics, None, ahead_s=0, late_s=0, batch_records=self._records)
        async with aclosing(source.read({})) as batches:
            async for batch in batches:
                found = _taken(filter(None, map(_original, batch.records)), missing)
                for records in _by_partition({place_of(record): record for record in found}).values():
                    yield list(records.values())
                if not missing:
                    return

    async def _where_it_lay(
        self, there: dict[TopicPartition, dict[Place, Letter]], missing: dict[Place, Letter]
    ) -> AsyncGenerator[Sequence[Record], None]:
        """One read each: they are too big for the dead-letter topic, or older than what it keeps."""
        consumer = consumer_of(self._kafka, group_id=None, enable_auto_commit=False, auto_offset_reset="earliest")
        try:
            await consumer.start()
            for at, places in there.items():
                consumer.assign([at])
                for place in sorted(places):
                    if found := _taken(await self._at(consumer, at, place.offset), missing):
                        yield found
        except KafkaError as error:
            raise Transient(f"{no_answer_message(self._kafka, error)}; the same command goes on where it was") from None
        finally:
            await stop_consumer(consumer)

    async def _at(self, consumer: AIOKafkaConsumer, at: TopicPartition, offset: int) -> Sequence[Record]:
        """The record at `offset` or, where it is gone, another one or none."""
        consumer.seek(at, offset)
        for _ in range(_POLLS):
            if found := (await consumer.getmany(at, timeout_ms=_POLL_MS, max_records=1)).get(at):
                return list(found)
        return ()


def value_of(kafka: KafkaSettings, letter: Letter) -> Record | None:
    """One letter's record; None: it is gone. Not to be called from an event loop."""

    async def first() -> Record | None:
        async with aclosing(Values(kafka, batch_records=1000).read([letter])) as batches:
            async for batch in batches:
                return batch[0]
        return None

    return asyncio.run(first())


def _original(sent: Record) -> StoredRecord | None:
    """A letter of the topic as the record that it was; None where its headers, which anybody may write, tell no place.

    The original may have been a letter once, and have `dlq.*` headers of its own: the last ones are ours.
    """
    names = [name for name, _ in sent.headers]
    told = {name: value for name, value in sent.headers if value is not None}
    try:
        ours = len(names) - 1 - names[::-1].index("dlq.topic")
        partition, offset, timestamp = (int(told[f"dlq.{name}"]) for name in ("partition", "offset", "timestamp"))
        topic = told["dlq.topic"].decode()
        headers = restore_names(sent.headers[:ours], sent.headers[ours:])
        record = StoredRecord(topic, partition, offset, timestamp, sent.key, sent.value, headers)
        place_of(record)
    except (KeyError, ValueError, OverflowError, OSError):
        return None
    return record


def _taken(records: Iterable[Record], missing: dict[Place, Letter]) -> list[Record]:
    """Those that are missing, each once; they are so no more."""
    return [record for record in records if _is_of(record, missing)]


def _is_of(record: Record, missing: dict[Place, Letter]) -> bool:
    place = place_of(record)
    letter = missing.get(place)
    if letter is None or sha256(record.value or b"").hexdigest() != letter.sha256:
        return False
    del missing[place]
    return True


def _by_partition(items: dict[Place, Item]) -> dict[TopicPartition, dict[Place, Item]]:
    found: dict[TopicPartition, dict[Place, Item]] = defaultdict(dict)
    for place, item in items.items():
        found[TopicPartition(place.topic, place.partition)][place] = item
    return found
