"""Partitions that a topic gets are found and read from their earliest record, wherever a new group begins."""

import asyncio
import json
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.kafka.beginning import begin_at_latest
from ragtide.stream.settings.sections import KafkaSettings
from tests.drift.jobs_process import jobs_process
from tests.failures import topics
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import Lane, committed, eventually, make_topics, trace

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

# Enough for a busy machine, and far less than the five minutes after which aiokafka looks by itself.
PATIENCE_S = 120


def new_topic(broker: KafkaNode, partitions: int) -> str:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(broker, {topic: partitions, f"{topic}.dead": 1})
    return topic


def put(broker: KafkaNode, topic: str, partition: int, ids: Sequence[str]) -> None:
    topics.send_to(broker, topic, partition, [(id_.encode(), trace(id_)) for id_ in ids])


@pytest.mark.clickhouse
def test_settings_as_they_are_find_new_partitions_of_traces_and_labels(
    kafka: KafkaNode, database: Database, tmp_path: Path
) -> None:
    topic, labels = new_topic(kafka, 1), new_topic(kafka, 1)
    of_labels = [(id_.encode(), json.dumps({"trace_id": id_, "expected": ["yes"]}).encode()) for id_ in ("a", "b")]

    def stored() -> int:
        return len(database.rows("SELECT 1 FROM labels FINAL"))

    variables = {"RAGTIDE_KAFKA__LABELS_TOPIC": labels, "RAGTIDE_KAFKA__TOPICS": topic}
    with (
        Lane(kafka, tmp_path, topic) as lane,
        jobs_process(database, kafka.bootstrap, tmp_path / "jobs.txt", **variables) as jobs,
    ):
        put(kafka, topic, 0, ["before"])
        topics.send_to(kafka, labels, 0, of_labels[:1])
        eventually(lambda: lane.traces() == ["before"], PATIENCE_S, lane.logs)
        eventually(lambda: stored() == 1, PATIENCE_S, jobs.said)
        topics.grow(kafka, topic, 3)
        topics.grow(kafka, labels, 2)
        put(kafka, topic, 2, ["after"])
        topics.send_to(kafka, labels, 1, of_labels[1:])
        eventually(lambda: sorted(lane.traces()) == ["after", "before"], PATIENCE_S, lane.logs)
        eventually(lambda: stored() == 2, PATIENCE_S, jobs.said)
    assert KafkaSettings().metadata_max_age_s <= 15  # so that new partitions are seen within 30 s


def test_latest_is_where_a_group_begins_and_nothing_after_is_left_out(kafka: KafkaNode, tmp_path: Path) -> None:
    topic = new_topic(kafka, 2)
    put(kafka, topic, 0, ["history"])
    late = {"start_at": "latest"}
    with Lane(kafka, tmp_path, topic, kafka=late) as lane:
        eventually(lane.is_at_work, PATIENCE_S, lane.logs)
        eventually(lambda: committed(kafka, lane.group, topic, 2) == {0: 1, 1: 0}, PATIENCE_S, lane.logs)
        lane.kill()
    put(kafka, topic, 1, ["to an idle partition while no worker ran"])
    topics.grow(kafka, topic, 3)
    put(kafka, topic, 2, ["to a new one while no worker ran"])
    with Lane(kafka, tmp_path, topic, kafka=late) as lane:
        eventually(lambda: len(lane.traces()) == 2, PATIENCE_S, lane.logs)
        topics.grow(kafka, topic, 4)
        put(kafka, topic, 3, ["before it was found"])
        expected = {
            "to an idle partition while no worker ran",
            "to a new one while no worker ran",
            "before it was found",
        }
        eventually(lambda: set(lane.traces()) == expected, PATIENCE_S, lane.logs)


def test_workers_that_start_at_once_begin_a_group_once(kafka: KafkaNode, tmp_path: Path) -> None:
    topic = new_topic(kafka, 4)
    for partition in range(4):
        put(kafka, topic, partition, [f"history-{partition}"])
    late = {"start_at": "latest"}
    with Lane(kafka, tmp_path, topic, kafka=late) as one, Lane(kafka, tmp_path, topic, kafka=late) as other:
        eventually(lambda: one.is_at_work() and other.is_at_work(), PATIENCE_S, one.logs)
        for partition in range(4):
            put(kafka, topic, partition, [f"news-{partition}"])
        eventually(lambda: len(one.traces()) >= 4, PATIENCE_S, one.logs)
        assert sorted(one.traces()) == [f"news-{partition}" for partition in range(4)]
        settings = KafkaSettings(bootstrap_servers=kafka.bootstrap, topics=(topic,), start_at="latest")
        assert asyncio.run(begin_at_latest(settings, one.group)) == f"group {one.group} goes on at what it committed"
