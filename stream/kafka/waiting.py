"""Since when the oldest record that waits in a partition has been there."""

from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition

_POLL_MS = 500
_SILENT_POLLS = 4


async def waiting_since(
    consumer: AIOKafkaConsumer, places: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, float]:
    """Timestamps, in seconds since 1970, of the first record from each place on; left out where nobody can tell.

    So it is where only marks of transactions or gaps lie before the end, and of records without a timestamp. The
    consumer is assigned to these partitions afterwards.
    """
    since: dict[TopicPartition, float] = {}
    consumer.assign(list(places))
    for at, offset in places.items():
        consumer.seek(at, offset)
    left, silent = set(places), 0
    while left and silent < _SILENT_POLLS:
        fetched = await consumer.getmany(*left, timeout_ms=_POLL_MS, max_records=1)
        since |= {at: first.timestamp / 1000 for at, (first, *_) in fetched.items() if first.timestamp >= 0}
        left -= fetched.keys()
        if not fetched:
            silent += 1
            left = {at for at in left if await consumer.position(at) < ends[at]}
    return since
