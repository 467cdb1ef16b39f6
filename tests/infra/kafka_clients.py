"""A test's own clients of Kafka, which a broker that has only just begun, woken up or come back does not fail."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

Answer = TypeVar("Answer")
PATIENCE_S = 60.0
_PAUSE_S = 0.2


async def patiently(ask: Callable[[], Awaitable[Answer]], patience_s: float = PATIENCE_S) -> Answer:
    """What `ask` gives, asked again while no broker answers: it must do no harm twice."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return await ask()
        except (KafkaError, TimeoutError) as error:
            worth_it = isinstance(error, TimeoutError) or error.retriable
            if not worth_it or time.monotonic() > deadline:
                raise
        await asyncio.sleep(_PAUSE_S)


@asynccontextmanager
async def admin_of(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    """Connected; what is asked of it goes through `patiently` where a broker may be away."""
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await patiently(client.start)
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def producer_of(bootstrap: str, **options: Any) -> AsyncIterator[AIOKafkaProducer]:
    """Connected; it tries each record again by itself, and has sent all when this ends."""
    client = AIOKafkaProducer(bootstrap_servers=bootstrap, **options)
    try:
        await patiently(client.start)
        yield client
    finally:
        await client.stop()


@asynccontextmanager
async def consumer_of(bootstrap: str, *topics: str, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """Connected; it tries again by itself whatever it fetches."""
    client = AIOKafkaConsumer(*topics, bootstrap_servers=bootstrap, **options)
    try:
        await patiently(client.start)
        yield client
    finally:
        await client.stop()
