"""How long records wait beside how long brokers keep them, on the embedded broker and on Apache Kafka."""

import asyncio
import time
import uuid
from itertools import islice

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from ragtide.drift.checks.consumer_lag import GroupLag
from ragtide.stream.connectivity_checks import run_checks
from ragtide.stream.kafka.lag_age import group_lags, is_compacted
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.settings.loader import load
from ragtide.stream.settings.sections import KafkaSettings
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import make_topics


async def waiting(kafka: KafkaSettings, sent_ms: int) -> list[GroupLag]:
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
        return await group_lags(kafka, lambda: sent_ms / 1000 + 1800)
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
    assert asyncio.run(waiting(found, now_ms())) == [GroupLag(found.group("fast"), hour, 1800.0, 3600.0)]


@pytest.mark.broker
def test_a_broker_that_says_nothing_of_retention_makes_no_wait(broker: EmbeddedBroker) -> None:
    found = settings(broker.bootstrap, "traces")
    make_topics(broker, dict.fromkeys(found.topics, 1))
    assert asyncio.run(waiting(found, now_ms())) == []


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("policy", "well"), [("delete", True), ("compact", False), ("compact,delete", False), (None, True)]
)
def test_check_says_that_dead_letters_of_equal_keys_would_be_deleted(
    kafka: KafkaNode, policy: str | None, well: bool
) -> None:
    dead = f"rag.dead-{uuid.uuid4().hex[:8]}"
    make_topics(kafka, {dead: 1}, {"cleanup.policy": policy} if policy else {})
    loaded = load(None, {"RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap, "RAGTIDE_KAFKA__DEAD_LETTER_TOPIC": dead})
    [found] = [check for check in islice(run_checks(loaded), 5) if check.name == "kafka.dead_letter_topic"]
    assert found.ok is well
    assert ("cleanup.policy" in found.message) is not well


@pytest.mark.broker
def test_a_broker_that_says_nothing_of_policies_compacts_nothing(broker: EmbeddedBroker) -> None:
    found = settings(broker.bootstrap, "dead")
    make_topics(broker, dict.fromkeys(found.topics, 1))
    assert not asyncio.run(is_compacted(found, found.topics[0]))
