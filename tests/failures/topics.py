"""What befalls topics and groups on Apache Kafka while lanes read them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.errors import TopicAlreadyExistsError, for_code

from tests.infra.kafka_clients import admin_of, consumer_of, producer_of
from tests.stream.core.traffic import Broker

Values = Sequence[tuple[bytes, bytes]]


def delete(broker: Broker, topic: str) -> None:
    """Gone; the brokers take its records away in the background."""
    _administer(broker, lambda admin: admin.delete_topics([topic]))


def make_again(broker: Broker, topic: str) -> None:
    """A topic of one partition and of this name, as soon as the brokers have done with its namesake."""

    async def make(admin: AIOKafkaAdminClient) -> None:
        while True:
            answer = await admin.create_topics([NewTopic(topic, 1, 1)])
            codes = {code for _, code, *_ in answer.topic_errors}
            if codes == {0}:
                return
            assert {for_code(code) for code in codes} == {TopicAlreadyExistsError}
            await asyncio.sleep(0.1)

    _administer(broker, make)


def grow(broker: Broker, topic: str, partitions: int) -> None:
    """So many partitions in all."""
    _administer(broker, lambda admin: admin.create_partitions({topic: NewPartitions(partitions)}))


def send_to(broker: Broker, topic: str, partition: int, values: Values, timestamp_ms: int | None = None) -> None:
    """(key, value) pairs into one partition, in order; `timestamp_ms` is what the producer's clock says."""

    async def send() -> None:
        async with producer_of(broker.bootstrap) as producer:
            sent = [
                await producer.send(topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms)
                for key, value in values
            ]
            await asyncio.gather(*sent)

    asyncio.run(send())


def send_as_one(broker: Broker, topic: str, values: Values, *, keep: bool) -> None:
    """In one transaction, committed or aborted."""

    async def send() -> None:
        async with producer_of(broker.bootstrap, transactional_id=topic) as producer:
            with suppress(_Aborted):
                async with producer.transaction():
                    await asyncio.gather(*[await producer.send(topic, value, key=key) for key, value in values])
                    if not keep:
                        raise _Aborted

    asyncio.run(send())


def end_of(broker: Broker, topic: str, partition: int = 0) -> int:
    """The offset that its next record will have."""

    async def ask() -> int:
        async with consumer_of(broker.bootstrap) as consumer:
            at = TopicPartition(topic, partition)
            return int((await consumer.end_offsets([at]))[at])

    return asyncio.run(ask())


def offsets_in(broker: Broker, topic: str, end: int) -> list[int]:
    """Those below `end` at which there still is a record."""

    async def read() -> list[int]:
        at, found = TopicPartition(topic, 0), []
        async with consumer_of(broker.bootstrap) as consumer:
            consumer.assign([at])
            await consumer.seek_to_beginning(at)
            while await consumer.position(at) < end:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found += [record.offset for record in records]
        return found

    return asyncio.run(read())


def reset(broker: Broker, group: str, partitions: Sequence[TopicPartition]) -> None:
    """Have a group without members begin at the earliest record of each partition."""

    async def commit() -> None:
        async with consumer_of(broker.bootstrap, group_id=group, enable_auto_commit=False) as consumer:
            consumer.assign(partitions)
            await consumer.commit(dict(await consumer.beginning_offsets(partitions)))

    asyncio.run(commit())


class _Aborted(Exception):
    """Ends a transaction."""


def _administer(broker: Broker, what: Callable[[AIOKafkaAdminClient], Awaitable[object]]) -> None:
    async def act() -> None:
        async with admin_of(broker.bootstrap) as admin:
            await what(admin)

    asyncio.run(act())
