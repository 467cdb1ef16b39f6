"""Since when the oldest record that waits in a partition has been there."""

from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition

_POLL_MS = 500
_MAX_EMPTY_POLLS = 4


async def oldest_record_times(
    consumer: AIOKafkaConsumer, offsets: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, float]:
    """Timestamps, in seconds since 1970, of the first record from each place on; left out where nobody can tell.

    So it is where only marks of transactions or gaps lie before the end, and of records without a timestamp. The
    consumer is assigned to these partitions afterwards.
    """
    since: dict[TopicPartition, float] = {}
    consumer.assign(list(offsets))
    for at, offset in offsets.items():
        consumer.seek(at, offset)
    left, empty_polls = set(offsets), 0
    while left and empty_polls < _MAX_EMPTY_POLLS:
        fetched = await consumer.getmany(*left, timeout_ms=_POLL_MS, max_records=1)
        since |= {at: first.timestamp / 1000 for at, (first, *_) in fetched.items() if first.timestamp >= 0}
        left -= fetched.keys()
        if not fetched:
            empty_polls += 1
            left = {at for at in left if await consumer.position(at) < ends[at]}
    return since
