"""End offsets of partitions, for readers of committed records."""

from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition

ISOLATION = "read_committed"  # records of aborted transactions are nobody's, of open ones nobody's yet
_POLL_MS = 1000
_POLLS = 10


async def end_offsets(consumer: AIOKafkaConsumer, begin: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The offset after the last record of each partition; all must be assigned to the consumer.

    Requested, and also read from a fetch: the embedded broker answers with the second offset of the last batch.
    For a consumer of committed records the end is at the first open transaction.
    """
    ends: dict[TopicPartition, int] = await consumer.end_offsets(list(begin))
    filled = [at for at, end in ends.items() if end > begin[at]]
    for at in filled:
        consumer.seek(at, max(ends[at] - 1, begin[at]))
    for _ in range(_POLLS):
        unknown = [at for at in filled if consumer.highwater(at) is None]
        if not unknown:
            break
        await consumer.getmany(*unknown, timeout_ms=_POLL_MS)
    return {
        at: max(end, readable_end(consumer.highwater(at) or 0, consumer.last_stable_offset(at)))
        for at, end in ends.items()
    }


def readable_end(highwater: int, stable: int | None) -> int:
    """The end for a consumer of committed records; `stable` is the last stable offset, None or -1 if unknown."""
    return highwater if stable is None or stable < 0 else min(highwater, stable)
