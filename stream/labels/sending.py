"""Send enriched traces to the topic of traces."""

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from ragtide.evaluators.errors import Transient
from ragtide.stream.kafka.broker_check import no_answer_message
from ragtide.stream.kafka.client import client_options
from ragtide.stream.labels.joining import Message
from ragtide.stream.settings.sections import KafkaSettings

_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


def send(kafka: KafkaSettings, messages: Sequence[Message]) -> list[bool]:
    """Send the messages; return for each whether the brokers accepted it. False: it is too big.

    Raises `Transient` where they are away: some may have been sent. Not to be called from an event loop.
    """
    return asyncio.run(_send(kafka, messages))


async def _send(kafka: KafkaSettings, messages: Sequence[Message]) -> list[bool]:
    options = client_options(kafka, "labels")
    producer = AIOKafkaProducer(acks="all", max_request_size=kafka.largest_request, **options)
    try:
        await producer.start()
        return await asyncio.gather(*(_try_send(producer, message) for message in messages))
    except KafkaError as error:
        raise Transient(no_answer_message(kafka, error)) from None
    finally:
        await producer.stop()


async def _try_send(producer: AIOKafkaProducer, message: Message) -> bool:
    try:
        await producer.send_and_wait(message.topic, message.value, key=message.key, headers=message.headers)
    except _TOO_LARGE:
        return False
    return True
