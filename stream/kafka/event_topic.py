"""Write batches of OpenTelemetry events to a topic, each acknowledged by the brokers before the next one."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from ragtide.evaluators.errors import ConfigError, Refused, Transient
from ragtide.sinks.otlp_http import Accepted
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.shutdown import stop_producer
from ragtide.stream.settings.sections import KafkaSettings

_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_CREATE = "create it with `ragtide topics create`"
_WITHIN_S = 30.0  # a batch is acknowledged, or tried again by the next run
_STOP_S = 5.0  # what was acknowledged has nothing left to send


class EventTopicSender:
    """Implements `ragtide.drift.export.EventSender`. Not to be called from an event loop."""

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._runner: asyncio.Runner | None = None
        self._producer: AIOKafkaProducer | None = None
        self._exists = False

    @property
    def name(self) -> str:
        """The target's name."""
        return f"topic:{self._topic}"

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Keep one producer for the batches of a run. Raises `Transient`, or `ConfigError` without the topic."""
        with asyncio.Runner() as runner:
            self._runner = runner
            try:
                runner.run(self._start())
                yield
            finally:
                if self._producer is not None:
                    runner.run(stop_producer(self._producer, _STOP_S))
                self._runner = self._producer = None

    def send(self, body: bytes) -> Accepted:
        """Produce a batch as one message without a key."""
        assert self._runner is not None, "connect first"
        self._runner.run(self._send(body))
        return Accepted(0, "")

    async def _start(self) -> None:
        if not self._exists:  # a producer would ask for it again and again
            if self._topic not in await partition_counts(self._kafka):
                raise ConfigError(f"topic {self._topic} is missing; {_CREATE}")
            self._exists = True
        producer = AIOKafkaProducer(
            acks="all",
            compression_type="gzip",
            max_request_size=self._kafka.largest_request,
            **client_options(self._kafka, "jobs"),
        )
        try:
            await producer.start()
        except KafkaError as error:
            await stop_producer(producer, _STOP_S)
            raise Transient(no_answer_message(self._kafka, error)) from None
        self._producer = producer

    async def _send(self, body: bytes) -> None:
        assert self._producer is not None
        try:
            await asyncio.wait_for(self._producer.send_and_wait(self._topic, body), _WITHIN_S)
        except _TOO_LARGE as error:
            raise Refused(f"topic {self._topic} takes no message so large ({type(error).__name__})") from None
        except TimeoutError:
            raise Transient(f"topic {self._topic}: the brokers acknowledge nothing within {_WITHIN_S:g} s") from None
        except KafkaError as error:
            if not error.retriable:
                raise ConfigError(
                    f"topic {self._topic} does not accept messages: {type(error).__name__}; {_CREATE}, and let this "
                    "user write to it"
                ) from None
            raise Transient(no_answer_message(self._kafka, error)) from None
