"""Send states of problems and insights to a compacted topic, one by one and in order."""

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from ragtide.drift.notify import SCHEMA_ID, Message
from ragtide.evaluators.errors import ConfigError, Refused, Transient
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.topic_admin import create_compacted
from ragtide.stream.settings.sections import KafkaSettings

log = logging.getLogger(__name__)

_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


class StateTopicSender:
    """Implements `ragtide.drift.notify.channel.Sender`. A message is tried as long as the outbox keeps it.

    Creates the topic, compacted, if it is missing. Not to be called from an event loop.
    """

    retry_for: timedelta | None = None

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._runner: asyncio.Runner | None = None
        self._producer: AIOKafkaProducer | None = None
        self._exists = False
        self._is_idempotent = True

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Keep one producer for the messages of a run. Raises `Transient` or `ConfigError`."""
        with asyncio.Runner() as runner:
            self._runner = runner
            try:
                runner.run(self._start())
                yield
            finally:
                if self._producer is not None:
                    runner.run(self._producer.stop())
                self._runner = self._producer = None

    def send(self, message: Message) -> str:
        """Produce the record; return its partition and offset."""
        value = json.dumps(message.content["value"], ensure_ascii=False)
        return self._run(message.content["key"], value.encode())

    def retract(self, message: Message, external_id: str) -> None:
        """Produce a tombstone, so that compaction removes the record."""
        self._run(message.content["key"], None)

    def _run(self, key: str, value: bytes | None) -> str:
        assert self._runner is not None, "connect first"
        return self._runner.run(self._send(key.encode(), value))

    def answers(self) -> bool:
        """A broker that fails on one record fails on the others."""
        return False

    async def _start(self) -> None:
        if not self._exists:
            if self._topic not in await partition_counts(self._kafka):
                await create_compacted(self._kafka, self._topic)
            self._exists = True
        if self._is_idempotent:
            try:
                self._producer = await self._started(enable_idempotence=True)
                return
            except KafkaError as error:
                if isinstance(error, KafkaConnectionError) or error.retriable:
                    raise Transient(no_answer_message(self._kafka, error)) from None
                # Some brokers have no idempotent producers, or this user may not use them. Records go out one by one,
                # so they keep their order; one that is written twice is the same state twice.
                self._is_idempotent = False
                log.info("topic %s: no idempotent producer (%s); using a plain one", self._topic, type(error).__name__)
        try:
            self._producer = await self._started(enable_idempotence=False)
        except KafkaError as error:
            raise Transient(no_answer_message(self._kafka, error)) from None

    async def _started(self, *, enable_idempotence: bool) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            enable_idempotence=enable_idempotence,
            acks="all",
            max_request_size=self._kafka.largest_request,
            **client_options(self._kafka, "jobs"),
        )
        try:
            await producer.start()
        except KafkaError:
            await producer.stop()
            raise
        return producer

    async def _send(self, key: bytes, value: bytes | None) -> str:
        assert self._producer is not None
        headers = [("dataschema", SCHEMA_ID.encode())]
        try:
            stored = await self._producer.send_and_wait(self._topic, value, key=key, headers=headers)
        except _TOO_LARGE as error:
            raise Refused(f"topic {self._topic} takes no record so large ({type(error).__name__})") from None
        except KafkaError as error:
            if not error.retriable:
                raise ConfigError(
                    f"topic {self._topic} does not accept records: {type(error).__name__}; does it exist, and may this "
                    "user write to it?"
                ) from None
            raise Transient(no_answer_message(self._kafka, error)) from None
        return f"{stored.partition}/{stored.offset}"
