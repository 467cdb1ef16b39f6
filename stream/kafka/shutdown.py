"""How consumers and producers are ended, whether or not the brokers are there."""

import asyncio
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
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


async def stop_producer(producer: AIOKafkaProducer, seconds: float) -> None:
    """Send what is buffered for at most so long, then close the connections: what is left is lost.

    aiokafka alone waits for every buffered message, for as long as `request_timeout_ms` for each attempt.
    """
    try:
        await asyncio.wait_for(producer.stop(), seconds)
    except TimeoutError:
        await producer._sender.close()
        await producer.client.close()
