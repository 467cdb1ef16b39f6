"""Send the application's traces to the topic at a steady rate, with the current fault."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from ragtide.evaluators.errors import Transient
from ragtide.evaluators.trace import Trace
from ragtide.stream.demo.application import Application
from ragtide.stream.demo.corpus import Passage
from ragtide.stream.demo.faults import Fault
from ragtide.stream.demo.message import Message
from ragtide.stream.demo.questions import ask_about

_log = logging.getLogger(__name__)
_MOST_IN_FLIGHT = 200


class Outbox(Protocol):
    """Where traces go."""

    def __call__(self, key: bytes, value: bytes) -> Awaitable[object]:
        """Returns once the broker has the record; raises `Transient` where it did not take it."""
        ...


def encode(trace: Trace) -> bytes:
    """The canonical JSON of a trace; what was not recorded is left out."""
    return msgspec.json.encode(_recorded(msgspec.to_builtins(trace)))


def trace_messages(trace: Trace) -> list[Message]:
    """The one message of a canonical trace."""
    return [Message(trace.trace_id.encode(), encode(trace))]


def _recorded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _recorded(item) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_recorded(item) for item in value]
    return value


class Traffic:
    """About `rate` questions a second, asked one after the other and answered side by side.

    `fault` is called before every question; `seed` decides questions and faults. `messages` encodes a trace.
    """

    def __init__(
        self,
        application: Application,
        passages: Sequence[Passage],
        send: Outbox,
        *,
        rate: float,
        seed: int,
        fault: Callable[[], Fault | None],
        messages: Callable[[Trace], Sequence[Message]] = trace_messages,
    ) -> None:
        self._application = application
        self._passages = passages
        self._send = send
        self._rate = rate
        self._rng = random.Random(f"traffic {seed}")
        self._fault = fault
        self._messages = messages
        self._in_flight: set[asyncio.Task[None]] = set()
        self.sent = 0
        self.lost = 0

    async def run(self) -> None:
        """Run until cancelled; no burst makes up for a pause (a busy machine)."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        try:
            while True:
                due = max(due + self._rng.uniform(0.5, 1.5) / self._rate, loop.time() - 1.0)
                await asyncio.sleep(max(due - loop.time(), 0.0))
                if len(self._in_flight) < _MOST_IN_FLIGHT:
                    task = asyncio.create_task(self._one())
                    self._in_flight.add(task)
                    task.add_done_callback(self._in_flight.discard)
        finally:
            for task in self._in_flight:
                task.cancel()

    async def _one(self) -> None:
        question = ask_about(self._passages, self._rng)
        trace = await self._application.answer(question, self._fault(), self._rng)
        try:
            for message in self._messages(trace):
                await self._send(message.key, message.value)
        except Transient as error:
            self.lost += 1
            _log.warning("could not send a trace: %s", error)
        else:
            self.sent += 1


@asynccontextmanager
async def kafka_outbox(bootstrap: str, topic: str) -> AsyncIterator[Outbox]:
    """Sends to `topic`, every record acknowledged; closed on leaving."""
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, acks="all")
    await producer.start()
    try:

        async def send(key: bytes, value: bytes) -> object:
            try:
                return await producer.send_and_wait(topic, value, key=key)
            except KafkaError as error:
                raise Transient(f"{topic}: {type(error).__name__}") from error

        yield send
    finally:
        await producer.stop()
