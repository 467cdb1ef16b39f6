"""Read the spans of one trace from the topic in which stage `assemble` keeps them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.partitioner import DefaultPartitioner

from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.stream.ingest.otel import Counts, LogBatch, SpanBatch
from ragtide.stream.kafka.broker_check import partition_counts
from ragtide.stream.kafka.end_offsets import end_offsets
from ragtide.stream.replay.ranges import Range, read_range
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.worker.assembly.messages import decode_part, read_head

_RECORDS = 1_000  # of a poll


def spans_of_trace(kafka: KafkaSettings, trace_id: str) -> tuple[SpanBatch, LogBatch]:
    """Read the whole partition of the trace. Raises `ConfigError` if the topic or the trace is not there."""
    found = asyncio.run(_read(kafka, trace_id))
    if not found[0].spans:
        raise ConfigError(
            f"topic {kafka.spans_topic} (kafka.spans_topic) has no spans of trace {trace_id}: perhaps its retention "
            "deleted them, or no stage assemble reads their topic"
        )
    return found


async def _read(kafka: KafkaSettings, trace_id: str) -> tuple[SpanBatch, LogBatch]:
    topic, key = kafka.spans_topic, trace_id.encode()
    count = (await partition_counts(kafka)).get(topic, 0)
    if not count:
        raise ConfigError(f"there is no topic {topic} (kafka.spans_topic): `ragtide topics create --spans` makes it")
    numbers = list(range(count))
    at = TopicPartition(topic, DefaultPartitioner()(key, numbers, numbers))
    spans, logs = SpanBatch([], Counts()), LogBatch([], Counts())
    async with aclosing(read_range(kafka, [at], {}, _whole(at), _RECORDS)) as batches:
        async for batch in batches:
            for record in batch.records:
                if record.key != key:
                    continue
                try:
                    if read_head(record.value).kind == "part":
                        part = decode_part(record.value or b"")
                        spans.spans.extend(part.spans)
                        logs.events.extend(part.logs)
                except BadRecord as bad:
                    spans.counts.refused[bad.reason] += 1
    return spans, logs


def _whole(at: TopicPartition) -> Callable[[AIOKafkaConsumer], Awaitable[Range]]:
    async def settle(consumer: AIOKafkaConsumer) -> Range:
        begin = await consumer.beginning_offsets([at])
        return Range(begin, await end_offsets(consumer, begin), dict(begin))

    return settle
