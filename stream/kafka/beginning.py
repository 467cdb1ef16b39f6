"""Start of a new group with kafka.start_at = latest: committed once for every partition, before any member joins.

Consumers themselves begin at the earliest record of a partition that the group has no offset of. That is one added
since, so that nothing written before it was found is lost. Left to consumers, `latest` would apply to it as well.
"""

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

from ragtide.evaluators.errors import Transient
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts, topics_read
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.consumer_groups import read_groups
from ragtide.stream.kafka.end_offsets import ISOLATION, end_offsets
from ragtide.stream.kafka.shutdown import stop_consumer
from ragtide.stream.settings.sections import KafkaSettings

# The group has members: the brokers accept no commit from outside it, and its first member has committed the start.
_NOT_EMPTY = (CommitFailedError, IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError)


async def begin_at_latest(kafka: KafkaSettings, group: str) -> str:
    """Commit the current end of every partition if the group is new; return a line that describes its start.

    A group is new if it has no offset in any of its topics. Raises `Transient` while no broker answers.
    """
    known = await partition_counts(kafka)
    found = [TopicPartition(topic, number) for topic in topics_read(kafka, known) for number in range(known[topic])]
    consumer = AIOKafkaConsumer(
        group_id=group, enable_auto_commit=False, isolation_level=ISOLATION, **client_options(kafka)
    )
    try:
        if (await read_groups(kafka, {group: found}))[group].committed:
            return f"group {group} goes on at what it committed"
        await consumer.start()
        consumer.assign(found)
        ends = await end_offsets(consumer, await consumer.beginning_offsets(found))
        await consumer.commit(ends)
    except _NOT_EMPTY:
        return f"group {group} has members, which began it"
    except KafkaError as error:
        raise Transient(no_answer_message(kafka, error)) from None
    finally:
        await stop_consumer(consumer)
    return f"new group {group} begins at the latest records of {len(ends)} partitions (kafka.start_at)"
