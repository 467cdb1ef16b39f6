"""`ragtide topics`, on the embedded broker and on Apache Kafka."""

import asyncio
import json
import time
import uuid
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from click.testing import CliRunner, Result

from ragtide.stream.cli import main
from ragtide.stream.kafka.broker_check import partition_counts
from ragtide.stream.kafka.consumer_groups import GroupPosition, group_positions
from ragtide.stream.local.topics import create_topics
from ragtide.stream.settings.sections import KafkaSettings
from tests.infra.kafka_node import KafkaNode
from tests.stream.pipe.test_replay_topic import produce

RECORDS = 25  # 13 and 12 of them in two partitions
BEGAN_MS = 1_700_000_000_000  # a millisecond from one to the next


@pytest.fixture(
    params=[pytest.param("broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def kafka_settings(request: pytest.FixtureRequest) -> KafkaSettings:
    """Topics of the test's own, with records and a dead letter."""
    name = uuid.uuid4().hex[:8]
    settings = KafkaSettings(
        bootstrap_servers=request.getfixturevalue(request.param).bootstrap,
        topics=(f"t-{name}",),
        dead_letter_topic=f"dead-{name}",
        jobs_topic=f"jobs-{name}",
        labels_topic=f"labels-{name}",  # that of the default name may be there: brokers are shared
        group_prefix=f"g-{name}",
    )
    produce(settings.bootstrap_servers, settings.topics[0], [(BEGAN_MS + n, b"{}") for n in range(RECORDS)])
    produce(settings.bootstrap_servers, settings.dead_letter_topic, [(BEGAN_MS, b"x")] * 3, partitions=1)
    produce(settings.bootstrap_servers, settings.jobs_topic, [], partitions=1)
    return settings


def run(kafka: KafkaSettings, *args: str) -> Result:
    names = ("bootstrap_servers", "dead_letter_topic", "labels_topic", "jobs_topic", "group_prefix")
    variables = {f"RAGTIDE_KAFKA__{name.upper()}": getattr(kafka, name) for name in names}
    environment: dict[str, Any] = {"RAGTIDE_CONFIG": None, "RAGTIDE_KAFKA__TOPICS": kafka.topics[0], **variables}
    return CliRunner().invoke(main, ["topics", *args], env=environment)


async def worked(kafka: KafkaSettings, committed: dict[int, int]) -> list[GroupPosition]:
    """What stands while a member of lane `fast` has committed that."""
    topic = kafka.topics[0]
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=kafka.bootstrap_servers,
        group_id=kafka.group("fast"),
        client_id="worker-1",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        async with asyncio.timeout(60):
            while len(consumer.assignment()) < 2:
                await consumer.getmany(timeout_ms=200)
        await consumer.commit({TopicPartition(topic, number): offset for number, offset in committed.items()})
        groups = {kafka.group("fast"): [topic], "": [kafka.dead_letter_topic]}
        return await group_positions(kafka, groups, lambda: BEGAN_MS / 1000 + 100)
    finally:
        await consumer.stop()


def test_a_group_has_an_offset_a_lag_and_a_member_in_each_partition(
    kafka_settings: KafkaSettings, request: pytest.FixtureRequest
) -> None:
    fast, topic = kafka_settings.group("fast"), kafka_settings.topics[0]
    found = asyncio.run(worked(kafka_settings, {0: 13, 1: 5}))
    figures = [(one.group, one.topic, one.partition, one.begin, one.end, one.committed, one.lag) for one in found]
    assert figures == [
        (fast, topic, 0, 0, 13, 13, 0),
        (fast, topic, 1, 0, 12, 5, 7),
        ("", kafka_settings.dead_letter_topic, 0, 0, 3, None, None),
    ]
    assert [one.lag_s for one in found] == [0, pytest.approx(100 - 0.011), None]  # the sixth of the odd ones
    members = [one.member.partition("@")[0] for one in found]
    tells = request.node.callspec.params["kafka_settings"] == "kafka"  # the embedded broker does not
    assert members == (["worker-1", "worker-1", ""] if tells else ["", "", ""])


def test_the_command_shows_lanes_that_ran_and_the_dead_letters(kafka_settings: KafkaSettings) -> None:
    asyncio.run(worked(kafka_settings, {1: 5}))
    least_s = time.time() - BEGAN_MS / 1000 - 1
    told = run(kafka_settings)
    assert told.exit_code == 0, told.output
    fast, topic = kafka_settings.group("fast"), kafka_settings.topics[0]
    rows = [line.split() for line in told.output.splitlines()]
    ages = [rows[1].pop(7), rows[2].pop(7), rows[4].pop()]
    assert all(float(age.replace(",", "")) > least_s for age in ages)
    assert ages[2] == max(ages)
    assert rows[1:5] == [
        [fast, topic, "0", "13", "13", "-", "13", "-"],
        [fast, topic, "1", "12", "12", "5", "7", "-"],
        ["-", kafka_settings.dead_letter_topic, "0", "3", "3", "-", "-", "-", "-"],
        [fast, "all", "20"],
    ]
    idle = ", ".join(kafka_settings.group(name) for name in ("model", "judge", "jobs"))
    assert told.output.splitlines()[-1] == f"no offsets and no members are known of: {idle}"
    found = json.loads(run(kafka_settings, "--json").output)
    assert [(one["group"], one["partition"], one["lag"]) for one in found] == [
        (fast, 0, 13),
        (fast, 1, 7),
        ("", 0, None),
    ]
    assert [one["lag_s"] is not None and one["lag_s"] > least_s for one in found] == [True, True, False]


@pytest.mark.kafka
def test_no_age_is_told_where_no_record_waits_but_the_mark_of_a_transaction(kafka: KafkaNode) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap, group_prefix=topic)

    async def sent_and_read() -> list[GroupPosition]:
        await create_topics(kafka.bootstrap, {topic: 1})
        servers, fast = settings.bootstrap_servers, settings.group("fast")
        sender = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=topic)
        async with sender as producer, producer.transaction():
            await producer.send(topic, b"{}", partition=0)
        options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed", "enable_auto_commit": False}
        async with AIOKafkaConsumer(bootstrap_servers=servers, group_id=fast, **options) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.getone()  # once the mark is there: brokers write it after they have said so
            await consumer.commit({TopicPartition(topic, 0): 1})
        return await group_positions(settings, {fast: [topic]})

    [found] = asyncio.run(sent_and_read())
    assert (found.end, found.committed, found.lag, found.lag_s) == (2, 1, 1, None)


def test_a_missing_topic_and_a_missing_broker_are_one_line(kafka_settings: KafkaSettings) -> None:
    missing = run(kafka_settings.model_copy(update={"jobs_topic": "nowhere"}))
    assert missing.exit_code == 2
    assert "has no topic nowhere: `ragtide topics create` makes it" in missing.output
    away = run(kafka_settings.model_copy(update={"bootstrap_servers": "127.0.0.1:1"}))
    assert (away.exit_code, away.output.count("\n")) == (2, 1)
    assert "no broker answers at 127.0.0.1:1" in away.output


@pytest.mark.kafka
def test_topics_are_made_once_and_what_is_there_with_other_numbers_is_told(kafka: KafkaNode) -> None:
    name = uuid.uuid4().hex[:8]
    settings = KafkaSettings(
        bootstrap_servers=kafka.bootstrap,
        topics=(f"t-{name}",),
        dead_letter_topic=f"dead-{name}",
        labels_topic=f"labels-{name}",
        jobs_topic=f"jobs-{name}",
        group_prefix=f"g-{name}",
    )
    asked = ("create", "--partitions", "3", "--retention-days", "2")
    first, again = run(settings, *asked), run(settings, *asked)
    names = (settings.topics[0], settings.dead_letter_topic, settings.labels_topic, settings.jobs_topic)
    assert (first.exit_code, again.exit_code) == (0, 0), first.output + again.output
    assert first.output.splitlines() == [f"{topic}: made" for topic in names]
    assert again.output.splitlines() == [f"{topic}: is there" for topic in names]
    found = asyncio.run(partition_counts(settings))
    assert [found[topic] for topic in names] == [3, 1, 1, 1]
    other = run(settings, "create", "--partitions", "6", "--retention-days", "1")
    assert other.exit_code == 1
    assert f"{names[0]}: is there, with partitions 3 instead of 6, retention.ms 172800000 instead of 86400000" in (
        other.output
    )
    assert f"{names[3]}: is there" in other.output.splitlines()
    refused = run(settings.model_copy(update={"jobs_topic": f"more-{name}"}), *asked, "--replicas", "3")
    assert refused.exit_code == 2
    assert f"refuse to create topic more-{name}" in refused.output


@pytest.mark.kafka
def test_the_topic_of_exported_scores_is_made_with_the_others(
    kafka: KafkaNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = uuid.uuid4().hex[:8]
    settings = KafkaSettings(
        bootstrap_servers=kafka.bootstrap,
        topics=(f"t-{name}",),
        dead_letter_topic=f"dead-{name}",
        labels_topic=f"labels-{name}",
        jobs_topic=f"jobs-{name}",
    )
    monkeypatch.setenv("RAGTIDE_OTEL__EXPORT__SCORES_TOPIC", f"scores-{name}")
    made = run(settings, "create", "--partitions", "2")
    assert made.exit_code == 0, made.output
    assert f"scores-{name}: made" in made.output.splitlines()
    assert asyncio.run(partition_counts(settings))[f"scores-{name}"] == 2
