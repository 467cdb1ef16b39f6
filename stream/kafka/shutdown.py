"""How a consumer is ended, whether or not the brokers are there."""

import asyncio
from contextlib import suppress

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError


async def stop_consumer(consumer: AIOKafkaConsumer) -> None:
    """Its group is left and nothing of it goes on, also where it never began. Raises only that the caller is cancelled.

    While the brokers are away aiokafka stops half-way, with the `CancelledError` of a fetch that it cancelled itself:
    taken for ours, it would end the caller without a word. The caller's own it may swallow.
    """
    with suppress(KafkaError, asyncio.CancelledError):
        await consumer.stop()
    await consumer._client.close()
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
