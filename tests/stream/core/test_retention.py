"""How long records wait beside how long brokers keep them, on the embedded broker and on Apache Kafka."""

import asyncio
import time
import uuid

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from drift.kinds.retention import Wait
from stream.configuration.sections import KafkaSettings
from stream.kafka.retention import waits
from stream.local.broker import EmbeddedBroker
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import make_topics


async def waiting(kafka: KafkaSettings, sent_ms: int) -> list[Wait]:
    """What is said 1800 s after a record was sent to each topic that lane `fast` has not worked off."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id=kafka.group("fast"))
    await producer.start()
    await consumer.start()
    try:
        places = [TopicPartition(topic, 0) for topic in kafka.topics]
        for at in places:
            await producer.send_and_wait(at.topic, b"{}", key=b"k", timestamp_ms=sent_ms, partition=0)
        consumer.assign(places)
        await consumer.commit(dict.fromkeys(places, 0))
        return await waits(kafka, lambda: sent_ms / 1000 + 1800)
    finally:
        await consumer.stop()
        await producer.stop()


def settings(bootstrap: str, *topics: str) -> KafkaSettings:
    own = uuid.uuid4().hex[:8]
    return KafkaSettings(
        bootstrap_servers=bootstrap, topics=tuple(f"{topic}-{own}" for topic in topics), group_prefix=f"g-{own}"
    )


def now_ms() -> int:
    return int(time.time() * 1000)


@pytest.mark.kafka
def test_waits_are_told_of_topics_that_are_deleted_from(kafka: KafkaNode) -> None:
    found = settings(kafka.bootstrap, "hour", "ever", "compacted")
    hour, ever, compacted = found.topics
    make_topics(kafka, {hour: 1}, {"retention.ms": "3600000"})
    make_topics(kafka, {ever: 1}, {"retention.ms": "-1"})
    make_topics(kafka, {compacted: 1}, {"cleanup.policy": "compact"})
    assert asyncio.run(waiting(found, now_ms())) == [Wait(found.group("fast"), hour, 1800.0, 3600.0)]


@pytest.mark.broker
def test_a_broker_that_says_nothing_of_retention_makes_no_wait(broker: EmbeddedBroker) -> None:
    found = settings(broker.bootstrap, "traces")
    make_topics(broker, dict.fromkeys(found.topics, 1))
    assert asyncio.run(waiting(found, now_ms())) == []
