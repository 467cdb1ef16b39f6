"""Compacted topics hold the latest state of every problem and insight: on the embedded broker and on Apache Kafka."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonschema
import pytest
from aiokafka import AIOKafkaConsumer

from ragtide.drift.notify.delivery import DeliveryResult, Target, deliver
from ragtide.drift.notify.notification import SCHEMA_ID, notification_schema
from ragtide.drift.notify.state_topics import InsightTopic, ProblemTopic
from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.kafka.lag_age import is_compacted
from ragtide.stream.kafka.state_topics import StateTopicSender
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.settings.sections import KafkaSettings
from tests.dashboards.sample_rows import NOON
from tests.drift.notify.delivery_job import OPENED, RESOLVED
from tests.drift.notify.webhook_site import ROUTES, insight
from tests.infra.kafka_node import KafkaNode

pytestmark = pytest.mark.clickhouse


class Topics:
    """Both topics, fresh ones, and what they hold."""

    def __init__(self, database: Database, bootstrap: str) -> None:
        name = uuid.uuid4().hex[:8]
        self.database = database
        self.kafka = KafkaSettings(
            bootstrap_servers=bootstrap, problems_topic=f"problems-{name}", insights_topic=f"insights-{name}"
        )
        problems, insights = self.kafka.problems_topic, self.kafka.insights_topic
        self.problems = Target(StateTopicSender(self.kafka, problems), ProblemTopic(problems, ROUTES))
        self.insights = Target(StateTopicSender(self.kafka, insights), insights=InsightTopic(insights, ROUTES))

    def run(self, target: Target, epoch: int = 1) -> DeliveryResult:
        return deliver(self.database, target, epoch, lambda: datetime.now(UTC))

    def records(self, topic: str, count: int) -> list[tuple[str, dict[str, Any]]]:
        async def read() -> list[tuple[str, dict[str, Any]]]:
            servers = self.kafka.bootstrap_servers
            consumer = AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest")
            await consumer.start()
            try:
                found = [await asyncio.wait_for(consumer.getone(), 20) for _ in range(count)]
            finally:
                await consumer.stop()
            assert all(dict(one.headers) == {"dataschema": SCHEMA_ID.encode()} for one in found)
            return [(one.key.decode(), json.loads(one.value)) for one in found]

        return asyncio.run(read())


@pytest.fixture(
    params=[pytest.param("broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def topics(request: pytest.FixtureRequest, database: Database) -> Topics:
    running: EmbeddedBroker | KafkaNode = request.getfixturevalue(request.param)
    return Topics(database, running.bootstrap)


def test_the_last_record_of_a_key_is_the_state_of_the_problem(topics: Topics) -> None:
    symptom = OPENED._replace(problem_id="s1", event_id="s1", segment="tenant", segment_value="acme")
    until = json.dumps({"until": (datetime.now(UTC) + timedelta(hours=1)).isoformat()})
    second = timedelta(seconds=1)
    muted = OPENED._replace(event_id="m1", event="muted", actor="kim", attributes=until, at=NOON + second, kind="")
    acked = muted._replace(event_id="a1", event="acked", actor="ada", at=NOON + 2 * second, attributes="{}")
    topics.database.insert("problem_events", [OPENED, symptom, muted, acked])
    topics.run(topics.problems)
    topics.database.insert("problem_events", [RESOLVED])
    topics.run(topics.problems)
    assert topics.run(topics.problems, epoch=2) == DeliveryResult()
    records = topics.records(topics.kafka.problems_topic, 5)
    assert [key for key, _ in records] == ["p1", "s1", "p1", "p1", "p1"]
    schema = notification_schema()
    validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/ProblemData", "$defs": schema["$defs"]})
    for _, value in records:
        validator.validate(value)
    latest = dict(records)  # as compaction keeps it
    assert (latest["p1"]["state"], latest["s1"]["state"]) == ("resolved", "open")
    assert latest["s1"]["parent"] in ("", "p1")
    assert (records[3][1]["muted_by"], records[3][1]["acked_by"], records[3][1]["kind"]) == ("kim", "ada", "threshold")
    assert latest["p1"]["owner"] == "search-team"
    assert asyncio.run(is_compacted(topics.kafka, topics.kafka.problems_topic))


def test_every_stored_version_of_an_insight_is_a_record(topics: Topics) -> None:
    topics.database.insert("insights", [insight("i1"), insight("i2")])
    assert topics.run(topics.insights) == DeliveryResult(opened=2)
    assert topics.run(topics.insights) == DeliveryResult()
    topics.database.insert("insights", [insight("i1", epoch=2, withdrawn=1)])
    assert topics.run(topics.insights) == DeliveryResult(closed=1)
    records = topics.records(topics.kafka.insights_topic, 3)
    assert {key: value["state"] for key, value in records} == {"i1": "withdrawn", "i2": "found"}


def test_while_no_broker_answers_records_wait(topics: Topics) -> None:
    away = topics.kafka.model_copy(update={"bootstrap_servers": "127.0.0.1:1"})
    sender = StateTopicSender(away, away.problems_topic)
    topics.database.insert("problem_events", [OPENED])
    with pytest.raises(Transient, match="no broker answers"):
        topics.run(Target(sender, topics.problems.channel))
    assert topics.run(topics.problems) == DeliveryResult(opened=1)
