"""The dead-letter topic: the original record and the reason, acknowledged before offsets are committed."""

import asyncio
import hashlib
import json
import logging
import random
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.stream.ingest.header_names import escape_names, names_header
from ragtide.stream.ingest.records import DeadLetter, Header, Record, unreadable_batch
from ragtide.stream.kafka.broker_check import no_answer_message
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.connection_errors import connection_error
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.worker.backoff import delays

log = logging.getLogger(__name__)

_KEY_BYTES = 1024  # a larger key is left out where the record itself did not fit
_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


class DeadLetters:
    """Sends dead letters with their original key, value and headers, and `dlq.*` headers with position and reason.

    A record that is too big for the topic is sent as coordinates and SHA-256. Start before use, stop afterwards.
    """

    def __init__(self, kafka: KafkaSettings, lane: str, rng: random.Random) -> None:
        self._kafka = kafka
        self._topic = kafka.dead_letter_topic
        self._lane = lane
        self._rng = rng
        options = client_options(kafka, lane)
        self._producer = AIOKafkaProducer(acks="all", max_request_size=kafka.largest_request, **options)

    async def start(self) -> str:
        """Connect and describe the connection. `Transient` while no broker answers: call it again then."""
        try:
            await self._producer.start()
        except KafkaError as error:
            raise await connection_error(self._kafka, ()) or Transient(no_answer_message(self._kafka, error)) from None
        return f"dead letters go to topic {self._topic}"

    async def stop(self) -> None:
        """Send what is buffered and disconnect, if it ever was connected."""
        await self._producer.stop()

    async def send(self, letters: Sequence[DeadLetter]) -> None:
        """Send the letters; return once the brokers acknowledged all. Retries forever while they are away.

        Raises `ConfigError` if the topic can never accept them (it is missing, or this user may not write to it).
        """
        await asyncio.gather(*(self._send(letter) for letter in letters))

    async def _send(self, letter: DeadLetter) -> None:
        record = letter.record
        headers = _headers(letter, self._lane)
        key, value = record.key, record.value
        if unreadable_batch(record) is None:
            sent = [*escape_names(record.headers), *headers, *names_header(record.headers)]
        else:
            key, value, sent = _coordinates(record, headers)
        for delay in delays(self._rng):
            try:
                await self._deliver(key, value, sent)
                return
            except _TOO_LARGE as error:
                if sent is headers:
                    raise self._unusable_topic(error) from None
                key, value, sent = _coordinates(record, headers)
            except KafkaError as error:
                if not error.retriable:
                    raise self._unusable_topic(error) from None
                log.warning("topic %s does not accept dead letters: %r; retrying", self._topic, error)
                await asyncio.sleep(delay)

    async def _deliver(self, key: bytes | None, value: bytes | None, headers: list[Header]) -> None:
        """Send one record; aiokafka accepts a record without key and value only as part of a batch."""
        producer = self._producer
        if key is not None or value is not None:
            await producer.send_and_wait(self._topic, value, key=key, headers=headers)
            return
        batch = producer.create_batch()
        batch.append(timestamp=None, key=None, value=None, headers=headers)
        partition = self._rng.choice(sorted(await producer.partitions_for(self._topic)))
        await (await producer.send_batch(batch, self._topic, partition=partition))

    def _unusable_topic(self, error: KafkaError) -> ConfigError:
        return ConfigError(
            f"topic {self._topic} (kafka.dead_letter_topic) cannot take dead letters: {type(error).__name__}; "
            "create it, let this user write to it, and start the worker again: nothing was committed"
        )


def _headers(letter: DeadLetter, lane: str) -> list[Header]:
    record = letter.record
    fields = {
        "dlq.topic": record.topic,
        "dlq.partition": record.partition,
        "dlq.offset": record.offset,
        "dlq.timestamp": record.timestamp,
        "dlq.reason": letter.reason,
        "dlq.stage": letter.stage,
        "dlq.detail": letter.detail,
        "dlq.lane": lane,
    }
    return [(name, str(value).encode(errors="replace")) for name, value in fields.items()]


def _coordinates(record: Record, headers: list[Header]) -> tuple[bytes | None, bytes, list[Header]]:
    """What is sent in place of a record that does not fit: its position and hash."""
    value = record.value or b""
    coordinates: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "size": len(value),
        "sha256": hashlib.sha256(value).hexdigest(),
    }
    batch = unreadable_batch(record)
    if batch is not None:
        coordinates |= {"first_offset": batch.first_offset, "records": batch.records, "codec": batch.codec}
    headers.append(("dlq.omitted", b"value" if batch is None else b"batch"))
    key = record.key if record.key is not None and len(record.key) <= _KEY_BYTES else None
    return key, json.dumps(coordinates).encode(), headers
