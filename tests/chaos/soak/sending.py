"""Traces with text for every `fast` evaluator, at a steady rate or as fast as the broker takes them."""

import asyncio
import time
from datetime import UTC, datetime

from aiokafka import AIOKafkaProducer

from tests.chaos.soak.verdicts import RATE
from tests.failures.site import Site
from tests.infra.kafka_clients import producer_of
from tests.stream.core.traffic import trace

_WORDS = "the parcel left the house yesterday and will arrive tomorrow "
_CONTEXTS = [{"id": f"chunk-{number}", "text": _WORDS * 5} for number in range(3)]


class Sender:
    """Numbers its traces from 0 on."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.sent = 0
        self.sent_bytes = 0

    async def steadily(self, seconds: float, rate: float = RATE) -> None:
        """`rate` traces a second; what one second could not send, the next does."""
        async with producer_of(self.site.broker.bootstrap) as producer:
            began, before = time.monotonic(), self.sent
            while (passed_s := time.monotonic() - began) < seconds:
                while self.sent < before + int(passed_s * rate):
                    await self._send(producer)
                await asyncio.sleep(0.05)

    async def in_full(self, seconds: float, most_bytes: int) -> None:
        """As fast as the broker takes them, until so many bytes wait there: a disk is not without end either."""
        async with producer_of(self.site.broker.bootstrap) as producer:
            ends, most = time.monotonic() + seconds, self.sent_bytes + most_bytes
            while self.sent_bytes < most and time.monotonic() < ends:
                await self._send(producer)

    async def _send(self, producer: AIOKafkaProducer) -> None:
        message = _message(self.sent)
        await producer.send(self.site.topic, message, key=b"%d" % self.sent)
        self.sent += 1
        self.sent_bytes += len(message)


def _message(number: int) -> bytes:
    return trace(
        f"trace-{number}",
        time=datetime.now(UTC).isoformat(),
        app=f"app-{number % 3}",
        question=f"where is parcel {number} that was ordered last week",
        answer=_WORDS * (1 + number % 5),
        contexts=_CONTEXTS,
        latency={"total_s": number % 80 / 8},
    )
