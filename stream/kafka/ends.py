"""Where partitions end."""

from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition

_POLL_MS = 1000
_POLLS = 10


async def end_offsets(consumer: AIOKafkaConsumer, begin: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The offset after the last record of each partition, of which the consumer must have been assigned all.

    Asked for, and read off a fetch as well: the embedded broker answers with the second offset of the last batch.
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
    return {at: max(end, consumer.highwater(at) or 0) for at, end in ends.items()}
