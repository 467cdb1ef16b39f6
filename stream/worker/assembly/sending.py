"""Send keyed messages, and return once the brokers acknowledged them."""

import asyncio
import logging
import random
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.stream.kafka.broker_check import no_answer_message
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.connection_errors import connection_error
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.worker.assembly.assembler import Output
from ragtide.stream.worker.backoff import delays

log = logging.getLogger(__name__)

_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_BATCH_BYTES = 512 << 10
_LINGER_MS = 5


class Sender:
    """A producer of the stage. Start before use, stop afterwards."""

    def __init__(self, kafka: KafkaSettings, lane: str, rng: random.Random) -> None:
        self._kafka = kafka
        self._rng = rng
        self._producer = AIOKafkaProducer(
            acks="all",
            max_request_size=kafka.largest_request,
            max_batch_size=_BATCH_BYTES,
            linger_ms=_LINGER_MS,
            compression_type="lz4",
            **client_options(kafka, lane),
        )

    async def start(self) -> str:
        """Connect and describe the connection. `Transient` while no broker answers: call it again then."""
        try:
            await self._producer.start()
        except KafkaError as error:
            raise await connection_error(self._kafka, ()) or Transient(no_answer_message(self._kafka, error)) from None
        return f"spans go to topic {self._kafka.spans_topic}"

    async def stop(self) -> None:
        """Send what is buffered and disconnect, if it ever was connected."""
        await self._producer.stop()

    async def send(self, topic: str, outputs: Sequence[Output], partition: int | None = None) -> list[Output]:
        """Send the messages; return those that the topic never accepts for their size. Retries forever.

        Messages of one partition may change their order if one of them is sent again.
        """
        results = await asyncio.gather(*(self._send(topic, output, partition) for output in outputs))
        return [output for output, is_sent in zip(outputs, results, strict=True) if not is_sent]

    async def _send(self, topic: str, output: Output, partition: int | None) -> bool:
        for delay in delays(self._rng):
            try:
                await self._producer.send_and_wait(topic, output.value, key=output.key, partition=partition)
                return True
            except _TOO_LARGE:
                return False
            except KafkaError as error:
                if not error.retriable:
                    raise ConfigError(
                        f"topic {topic} cannot take messages of stage assemble: {type(error).__name__}; create it, let "
                        "this user write to it, and start the worker again: nothing was committed"
                    ) from None
                log.warning("topic %s does not accept messages: %r; retrying", topic, error)
                await asyncio.sleep(delay)
        raise AssertionError("delays never end")
