"""Try the latest records of each topic of traces: can a worker read them, and are all their fields measured?"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.adjustments import Adjustments, describe_unknown
from ragtide.stream.ingest.canonical_json import decode_canonical
from ragtide.stream.ingest.decoders import Decoders
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.enriched import resolve_enrichment
from ragtide.stream.ingest.records import Record
from ragtide.stream.kafka.end_offsets import end_offsets
from ragtide.stream.replay.ranges import Range, read_range
from ragtide.stream.settings.loader import Settings

_RECORDS = 200  # of each topic
_MOST_BYTES = 32 << 20  # of all topics
_SHOWN = 5


class TopicReport(NamedTuple):
    """What the latest records of a topic are. `ok` None: the worker reads them, and a person should look."""

    topic: str
    ok: bool | None
    message: str


async def latest_records(
    settings: Settings, topics: Mapping[str, int], number: int = _RECORDS
) -> dict[str, list[Record]]:
    """The latest records of each topic, given with its number of partitions; about `number` of each."""
    partitions = [TopicPartition(topic, place) for topic, count in topics.items() for place in range(count)]

    async def settle(consumer: AIOKafkaConsumer) -> Range:
        begin = await consumer.beginning_offsets(partitions)
        ends = await end_offsets(consumer, begin)
        start = {at: max(begin[at], end - -(-number // topics[at.topic])) for at, end in ends.items()}
        return Range(start, ends, dict(start))

    found: dict[str, list[Record]] = {topic: [] for topic in topics}
    size = 0
    async with aclosing(read_range(settings.kafka, partitions, {}, settle, number)) as batches:
        async for batch in batches:
            for record in batch.records:
                found[record.topic].append(record)
                size += len(record.value or b"")
            if size > _MOST_BYTES:
                break
    return found


def report(settings: Settings, latest: Mapping[str, Sequence[Record]]) -> Iterator[TopicReport]:
    """Decode the records as a worker would; say what it could not read, what it normalises and what it leaves out."""
    decoders, limits = Decoders(settings.kafka), Limits.of(settings.ingest, settings.retention, timely=True)
    for topic, records in latest.items():
        adjustments = Adjustments()
        refused: list[tuple[Record, BadRecord]] = []
        for record in records:
            try:
                known = resolve_enrichment(record) if record.headers else record
                decode_trace(known, limits, decoders[topic] if known is record else decode_canonical, adjustments)
            except BadRecord as bad:
                refused.append((record, bad))
        yield _of_topic(topic, len(records), refused, adjustments, settings.worker.dead_letter_ratio)
        for unknown, count in adjustments.unknown.most_common(_SHOWN):
            yield TopicReport(topic, None, f"in {count:,} of {len(records):,}: {describe_unknown(unknown)}")


def _of_topic(
    topic: str, count: int, refused: Sequence[tuple[Record, BadRecord]], adjustments: Adjustments, most: float
) -> TopicReport:
    if not count:
        return TopicReport(topic, None, "no record yet")
    rules = ", ".join(
        f"{rule}{f' at {field}' if field else ''} {number:,}"
        for (rule, field), number in adjustments.normalised.most_common(_SHOWN)
    )
    read = f"; normalised: {rules}" if rules else ""
    if not refused:
        return TopicReport(topic, True, f"all of the latest {count:,} can be read{read}")
    reasons = Counter(bad.reason for _, bad in refused).most_common(3)
    shares = ", ".join(f"{reason} {number / len(refused):.0%}" for reason, number in reasons)
    record, bad = next((record, bad) for record, bad in refused if bad.reason == reasons[0][0])
    return TopicReport(
        topic,
        None if len(refused) / count <= most else False,
        f"{len(refused):,} of the latest {count:,} would be dead letters; reasons: {shares}. Example: "
        f"{topic}/{record.partition} offset {record.offset}: {bad}. `ragtide validate FILE` says what to write{read}",
    )
