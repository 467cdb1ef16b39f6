"""Store the dead letters of stage `assemble` in table `dead_letters`: the stage itself has no ClickHouse.

They are read from the dead-letter topic, behind a position in table `cursors`. A topic that was deleted and
created again has positions of its own. A letter that is read twice is one row.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

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
from ragtide.stream.worker.assembly.rekeying import STAGE

_LANE = b"assemble"
_POLL_MS = 1000
_RECORDS = 500
_RECENT = timedelta(hours=1)  # alerts count the letters that were stored within it
_MOST_PARTITIONS, _MOST_OFFSETS = 1 << 31, 1 << 63


class _Coordinates(msgspec.Struct):
    """What is sent in place of a value that does not fit."""

    size: int
    sha256: str


class _Message(NamedTuple):
    """What a letter is of; `time` is the broker's."""

    topic: str
    partition: int
    offset: int
    time: datetime


class _Position(NamedTuple):
    """The next offset of a partition, and the cursor that has it."""

    cursor: str
    offset: int


class _OldLetterRow(NamedTuple):
    """Table `dead_letters`, with the time at which the stage sent the letter: alerts of today are not about it."""

    run_id: str
    topic: str
    partition: int
    offset: int
    time: datetime
    reason: str
    detail: str
    stage: str
    size: int
    sha256: str
    ingested_at: datetime


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
    ends = {at: end for at, end in (await end_offsets(consumer, begin)).items() if end > begin[at]}
    created = await _created_ms(consumer, {at: begin[at] for at in ends})
    following = {at: _position(database, at, begin[at], end, created.get(at)) for at, end in ends.items()}
    for at, position in following.items():
        consumer.seek(at, position.offset)
    count = 0
    while behind := [at for at, end in ends.items() if following[at].offset < end]:
        fetched = await consumer.getmany(*behind, timeout_ms=_POLL_MS, max_records=_RECORDS)
        for records in fetched.values():
            count += await asyncio.to_thread(_store_letters, database, records, topics)
        for at in behind:
            offset = await consumer.position(at)
            if offset > following[at].offset:
                following[at] = following[at]._replace(offset=offset)
                await asyncio.to_thread(cursors.save, database, *following[at])
    return count


async def _created_ms(consumer: AIOKafkaConsumer, begin: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The time of the first record of each partition that still has all of its records: it tells topics apart."""
    whole = [at for at, offset in begin.items() if offset == 0]
    found = await consumer.offsets_for_times(dict.fromkeys(whole, 0)) if whole else {}
    return {at: first.timestamp for at, first in found.items() if first is not None and first.timestamp > 0}


def _position(database: Database, at: TopicPartition, begin: int, end: int, created_ms: int | None) -> _Position:
    """The stored position; of a topic that was created again, the beginning.

    Once retention has deleted the first record, the newest known time of it counts.
    """
    name = f"stage letters:{at.topic}/{at.partition}"
    known_ms = cursors.load(database, name)
    if created_ms is None:
        created_ms = known_ms
    elif created_ms > known_ms:
        cursors.save(database, name, created_ms)
    cursor = f"{name}@{created_ms}"
    offset = cursors.load(database, cursor)
    return _Position(cursor, offset if begin <= offset <= end else begin)


def _store_letters(database: Database, records: Sequence[Record], topics: frozenset[str]) -> int:
    """Store the letters of the stage among the records that the table has not; return their number.

    Anybody may have written a letter, so the first one of a position counts. An old one, as at the first run, has the
    time at which it was sent. The others have that of the server's clock.
    """
    oldest_ms = (datetime.now(UTC) - _RECENT).timestamp() * 1000
    letters: dict[_Message, tuple[Record, DeadLetterRow]] = {}
    for record in records:
        if (row := _row(record, topics)) is not None:
            letters.setdefault(_Message(row.topic, row.partition, row.offset, row.time), (record, row))
    known = _stored(database, letters)
    new = [one for position, one in letters.items() if position not in known]
    database.insert("dead_letters", [row for record, row in new if record.timestamp >= oldest_ms])
    old = [_OldLetterRow(*row, broker_time(record)) for record, row in new if record.timestamp < oldest_ms]
    database.insert("dead_letters", old)
    return len(new)


def _stored(database: Database, letters: Collection[_Message]) -> set[_Message]:
    """Those that the table has, and others of these topics and offsets."""
    if not letters:
        return set()
    rows = database.rows(
        "SELECT DISTINCT topic, partition, offset, time FROM dead_letters WHERE run_id = {run:String} "
        "AND topic IN {topics:Array(String)} AND offset IN {offsets:Array(UInt64)}",
        {
            "run": LIVE,
            "topics": sorted({one.topic for one in letters}),
            "offsets": sorted({one.offset for one in letters}),
        },
    )
    return {_Message(**row) for row in rows}


def _row(sent: Record, topics: frozenset[str]) -> DeadLetterRow | None:
    """The row of a letter of the stage; None for one of another lane, and for what the stage did not write."""
    letter = read_letter(sent)
    if letter is None or letter.fields.get("dlq.lane") != _LANE or letter.record.topic not in topics:
        return None
    record, fields = letter
    reason = fields.get("dlq.reason", b"").decode(errors="replace")
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
    return DeadLetterRow(LIVE, *at, reason, _detail(reason), STAGE, size, digest)


def _detail(reason: str) -> str:
    """Words of our own: those of the letter may be anybody's."""
    why = reason.replace("_", " ")
    return f"stage assemble: {why}; `ragtide dead-letters replay` says more, and sends it if the cause is repaired"
