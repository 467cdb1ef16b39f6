"""A consumer ends while the brokers are away, and neither takes its caller along nor keeps it from being cancelled."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from ragtide.stream.kafka.shutdown import stop_consumer
from ragtide.stream.local.broker import EmbeddedBroker
from tests.stream.core.traffic import make_topics

AT = TopicPartition("ending", 0)
CONSUMERS = 6
LONGER_THAN_A_PAUSE_S = 0.5  # of a fetch that failed


@pytest.mark.broker
def test_it_ends_while_the_brokers_are_away_and_whoever_is_cancelled_meanwhile_is_cancelled() -> None:
    async def play() -> None:
        consumers = [AIOKafkaConsumer(bootstrap_servers=broker.bootstrap) for _ in range(CONSUMERS)]
        for consumer in consumers:
            await consumer.start()
            consumer.assign([AT])
            await consumer.position(AT)
        await asyncio.to_thread(broker.stop)
        await asyncio.sleep(LONGER_THAN_A_PAUSE_S)

        for consumer in consumers[::2]:
            await stop_consumer(consumer)
        ending = [asyncio.create_task(stop_consumer(consumer)) for consumer in consumers[1::2]]
        await asyncio.sleep(0)
        for task in ending:
            task.cancel()
        await asyncio.wait(ending)
        assert [task.cancelled() for task in ending] == [True] * len(ending)
        async with asyncio.timeout(20):
            while going_on := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(going_on)

    with EmbeddedBroker() as broker:
        make_topics(broker, {AT.topic: 1})
        asyncio.run(play())


def test_one_that_never_began_ends() -> None:
    async def play() -> None:
        await stop_consumer(AIOKafkaConsumer(bootstrap_servers="127.0.0.1:1"))

    asyncio.run(play())
