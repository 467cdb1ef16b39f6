"""Store the dead letters of stage `assemble` in table `dead_letters`: the stage itself has no ClickHouse.

They are read from the dead-letter topic, behind a position in table `cursors`. A letter that is read twice is one row.
"""

import asyncio
from collections.abc import Sequence
from hashlib import sha256

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from ragtide.drift import cursors
from ragtide.evaluators.errors import Transient
from ragtide.evaluators.slugs import is_slug
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE, DeadLetterRow
from ragtide.stream.ingest.records import Record, broker_time
from ragtide.stream.ingest.sent_letter import read_letter
from ragtide.stream.kafka.batches import consumer_of
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts
from ragtide.stream.kafka.end_offsets import ISOLATION, end_offsets
from ragtide.stream.kafka.shutdown import stop_consumer
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.terminal_text import plain
from ragtide.stream.worker.assembly.rekeying import STAGE

_LANE = b"assemble"
_POLL_MS = 1000
_RECORDS = 500
_LONGEST_DETAIL = 1_000  # characters
_MOST_PARTITIONS, _MOST_OFFSETS = 1 << 31, 1 << 63


class _Coordinates(msgspec.Struct):
    """What is sent in place of a value that does not fit."""

    size: int
    sha256: str


def store_stage_letters(kafka: KafkaSettings, otel: OtelSettings, database: Database) -> int:
    """Store the letters that came since the last call; return their number.

    Raises `Transient` while no broker answers. Not to be called from an event loop.
    """
    return asyncio.run(_store(kafka, otel, database))


def span_topics(kafka: KafkaSettings, otel: OtelSettings) -> frozenset[str]:
    """The topics that the stage reads."""
    return frozenset((*otel.topics, *otel.log_topics, kafka.spans_topic))


async def _store(kafka: KafkaSettings, otel: OtelSettings, database: Database) -> int:
    known = await partition_counts(kafka)
    topic = kafka.dead_letter_topic
    if topic not in known or kafka.spans_topic not in known:
        return 0  # no stage ever ran
    consumer = consumer_of(
        kafka,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level=ISOLATION,
        max_partition_fetch_bytes=kafka.max_record_bytes,
    )
    try:
        await consumer.start()
        consumer.assign([TopicPartition(topic, number) for number in range(known[topic])])
        return await _read(consumer, span_topics(kafka, otel), database)
    except KafkaError as error:
        raise Transient(no_answer_message(kafka, error)) from None
    finally:
        await stop_consumer(consumer)


async def _read(consumer: AIOKafkaConsumer, topics: frozenset[str], database: Database) -> int:
    begin = await consumer.beginning_offsets(list(consumer.assignment()))
    ends = await end_offsets(consumer, begin)
    following = {at: _first(database, at, begin[at], end) for at, end in ends.items()}
    for at, offset in following.items():
        consumer.seek(at, offset)
    count = 0
    while behind := [at for at, end in ends.items() if following[at] < end]:
        fetched = await consumer.getmany(*behind, timeout_ms=_POLL_MS, max_records=_RECORDS)
        rows = [row for records in fetched.values() for row in _rows(records, topics)]
        if rows:
            await asyncio.to_thread(database.insert, "dead_letters", rows)
            count += len(rows)
        for at in behind:
            position = await consumer.position(at)
            if position > following[at]:
                following[at] = position
                await asyncio.to_thread(cursors.save, database, _cursor(at), position)
    return count


def _first(database: Database, at: TopicPartition, begin: int, end: int) -> int:
    """The stored position; of a topic that was created again, the beginning."""
    position = cursors.load(database, _cursor(at))
    return position if begin <= position <= end else begin


def _cursor(at: TopicPartition) -> str:
    return f"stage letters:{at.topic}/{at.partition}"


def _rows(records: Sequence[Record], topics: frozenset[str]) -> list[DeadLetterRow]:
    return [row for record in records if (row := _row(record, topics)) is not None]


def _row(sent: Record, topics: frozenset[str]) -> DeadLetterRow | None:
    """The row of a letter of the stage; None for one of another lane, and for what the stage did not write."""
    letter = read_letter(sent)
    if letter is None or letter.fields.get("dlq.lane") != _LANE or letter.record.topic not in topics:
        return None
    record, fields = letter
    reason, detail = (fields.get(f"dlq.{name}", b"").decode(errors="replace") for name in ("reason", "detail"))
    if not is_slug(reason) or not 0 <= record.partition < _MOST_PARTITIONS or not 0 <= record.offset < _MOST_OFFSETS:
        return None
    value = record.value or b""
    size, digest = len(value), sha256(value).hexdigest()
    if "dlq.omitted" in fields:
        try:
            omitted = msgspec.json.decode(value, type=_Coordinates)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        size, digest = omitted.size, omitted.sha256
    at = (record.topic, record.partition, record.offset, broker_time(record))
    return DeadLetterRow(LIVE, *at, reason, plain(detail)[:_LONGEST_DETAIL], STAGE, size, digest)
