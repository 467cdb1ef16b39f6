"""Scores on a topic: on the embedded broker and on Apache Kafka, read back as a Collector would."""

import asyncio
import json
import time
import uuid
from contextlib import ExitStack
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.kafka import event_topic, topic_admin
from ragtide.stream.kafka.event_topic import EventTopicSender
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.settings.sections import KafkaSettings
from tests.drift.export.scene import DELAY_S, Exporting, records_of, score, trace, trace_id
from tests.infra.kafka_node import KafkaNode
from tests.infra.ports import free_ports

pytestmark = pytest.mark.clickhouse


@pytest.fixture(
    params=[pytest.param("broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def settings(request: pytest.FixtureRequest) -> KafkaSettings:
    running: EmbeddedBroker | KafkaNode = request.getfixturevalue(request.param)
    return KafkaSettings(bootstrap_servers=running.bootstrap)


def created(kafka: KafkaSettings) -> str:
    topic = f"scores-{uuid.uuid4().hex[:8]}"
    wanted = topic_admin.wanted_export_topic(kafka, topic, 2, 1, None)
    [made] = asyncio.run(topic_admin.create_topics(kafka, wanted))
    assert made.is_new
    return topic


def read(kafka: KafkaSettings, topic: str, count: int) -> list[dict[str, Any]]:
    """The log records of so many messages."""

    async def consume() -> list[bytes]:
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest")
        await consumer.start()
        try:
            return [(await asyncio.wait_for(consumer.getone(), 20)).value for _ in range(count)]
        finally:
            await consumer.stop()

    return [record for value in asyncio.run(consume()) for record in records_of(json.loads(value))]


def test_scores_are_messages_of_batches(database: Database, settings: KafkaSettings) -> None:
    topic = created(settings)
    export = Exporting(database, EventTopicSender(settings, topic), batch_events=2)
    database.insert("traces", [trace(1)])
    export.store(score(1), score(2), score(3))
    assert export.run() == 3
    assert export.run() == 0
    found = {record["traceId"]: record.get("spanId") for record in read(settings, topic, 2)}
    assert found == {trace_id(1): f"{1:016x}", trace_id(2): None, trace_id(3): None}
    assert export.counts() == {"sent": 3}


@pytest.mark.kafka
def test_a_batch_that_is_too_large_is_halved_down_to_the_row_that_is(database: Database, kafka: KafkaNode) -> None:
    small = KafkaSettings(bootstrap_servers=kafka.bootstrap, max_record_bytes=1 << 16)
    topic = created(small)
    export = Exporting(database, EventTopicSender(small, topic))
    long = score(2, fingerprint=uuid.uuid4().hex * 10_000)
    for row in (score(1), long, score(3)):
        export.store(row, after_s=0.001)
    assert export.run() == 2
    assert export.counts() == {"sent": 2, "refused": 1}
    assert {record["traceId"] for record in read(small, topic, 2)} == {trace_id(1), trace_id(3)}


@pytest.mark.broker
def test_without_a_broker_nothing_is_lost(database: Database) -> None:
    port = free_ports(1)
    settings = KafkaSettings(bootstrap_servers=f"127.0.0.1:{port}")
    export = Exporting(database, EventTopicSender(settings, "scores"))
    export.store(score(1))
    with pytest.raises(Transient):
        export.run()
    with pytest.raises(Transient, match="next attempt in"):
        export.run(1)
    with EmbeddedBroker(port):
        asyncio.run(
            topic_admin.create_topics(settings, topic_admin.wanted_export_topic(settings, "scores", 1, 1, None))
        )
        assert export.run(DELAY_S) == 1
        assert [record["traceId"] for record in read(settings, "scores", 1)] == [trace_id(1)]


@pytest.mark.broker
@pytest.mark.timeout(60)
def test_a_broker_that_goes_away_within_a_run_holds_it_for_no_longer_than_the_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_topic, "_WITHIN_S", 1.0)
    monkeypatch.setattr(event_topic, "_STOP_S", 1.0)
    settings = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_ports(1)}")
    sender = EventTopicSender(settings, "scores")
    with EmbeddedBroker(int(settings.bootstrap_servers.rpartition(":")[2])) as broker, ExitStack() as connection:
        wanted = topic_admin.wanted_export_topic(settings, "scores", 1, 1, None)
        asyncio.run(topic_admin.create_topics(settings, wanted))
        connection.enter_context(sender.connected())
        sender.send(b"{}")
        broker.stop()
        began = time.monotonic()
        with pytest.raises(Transient):
            sender.send(b"{}")
        connection.close()
        assert time.monotonic() - began < 10, "aiokafka goes on for 40 s"


@pytest.mark.kafka
def test_without_the_topic_it_says_what_to_do(database: Database, kafka: KafkaNode) -> None:
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap)
    export = Exporting(database, EventTopicSender(settings, "missing"))
    export.store(score(1))
    with pytest.raises(ConfigError, match="topic missing is missing; create it with `ragtide topics create`"):
        export.run()
