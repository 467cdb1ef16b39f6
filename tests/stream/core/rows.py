"""Blocks and records small enough to count by hand."""

from datetime import UTC, datetime

from aiokafka.structs import ConsumerRecord

from ragtide.sinks.rows import Block, DeadLetterRow, ProgressRow

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def dead(offset: int) -> DeadLetterRow:
    return DeadLetterRow("live", "rag.traces", 0, offset, AT, "not_json", "", "decode", 1, "00")


def block_of(*offsets: int) -> Block:
    return Block(dead_letters=[dead(offset) for offset in offsets])


def progress(partition: int, offset: int) -> ProgressRow:
    return ProgressRow("fast", "rag.traces", partition, "me", AT, offset, 0)


def record(
    offset: int, value: bytes | None = b"{}", timestamp: int = 1, partition: int = 0, topic: str = "rag.traces"
) -> ConsumerRecord:
    size = len(value) if value is not None else -1
    return ConsumerRecord(topic, partition, offset, timestamp, 0, None, value, None, -1, size, ())
