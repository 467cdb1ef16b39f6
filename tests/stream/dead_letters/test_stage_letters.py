"""Dead letters of stage `assemble` are stored from their topic, each once."""

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.stage_letters import store_stage_letters
from tests.failures.topics import delete, make_again
from tests.infra.kafka_clients import admin_of
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import Broker
from tests.stream.dead_letters.scene import Sent
from tests.stream.dead_letters.span_scene import (
    LARGE,
    PROTO,
    SpanScene,
    refused_spans,
)

pytestmark = [pytest.mark.clickhouse, pytest.mark.kafka, pytest.mark.timeout(300)]


@pytest.fixture
def scene(kafka: KafkaNode, database: Database, monkeypatch: pytest.MonkeyPatch) -> SpanScene:
    return refused_spans(kafka, database, monkeypatch)


def test_letters_of_the_stage_are_stored_once_and_those_of_others_are_not(scene: SpanScene) -> None:
    assert scene.store() == 4
    stored = scene.stored()["dead_letters"]
    assert sorted((row["partition"], row["offset"], row["size"]) for row in stored) == [
        (0, 0, len(PROTO)),
        (0, 1, len(b"neither")),
        (0, 2, 0),
        (1, 1, len(LARGE)),
    ]
    assert {(row["topic"], row["stage"]) for row in stored} == {(scene.otlp, "spans")}
    assert scene.store() == 0
    letter = {"topic": scene.otlp, "partition": "0", "offset": "7", "timestamp": "1", "lane": "assemble", "reason": "x"}
    others: list[dict[str, str]] = [
        {},
        {**letter, "lane": "fast"},
        {**letter, "topic": "rag.elsewhere"},
        {**letter, "offset": "-1"},
        {**letter, "partition": "9" * 30},
        {**letter, "reason": "no slug\n"},
        {**letter, "omitted": "value"},
    ]
    forged = [Sent(b"x", headers=[(f"dlq.{key}", value.encode()) for key, value in one.items()]) for one in others]
    scene.send(*forged, topic=f"{scene.topic}.dead")
    assert scene.store() == 0
    assert scene.stored()["dead_letters"] == stored
    assert scene.refuse("otlp_json") != []
    assert scene.store() == 0, "sent again, as after a kill"
    assert scene.stored()["dead_letters"] == stored


def of_stage(scene: SpanScene, *offsets: int, **fields: str) -> list[Sent]:
    """Letters as the stage sends them, of messages at these offsets."""
    letter = {"topic": scene.otlp, "partition": "0", "timestamp": "1", "lane": "assemble", "reason": "not_otlp"}
    return [
        Sent(b"x", headers=[(f"dlq.{key}", value.encode()) for key, value in headers.items()])
        for headers in ({**letter, "offset": str(offset), **fields} for offset in offsets)
    ]


@pytest.mark.parametrize("count", [2, 9], ids=["fewer than before", "more than before"])
def test_letters_of_a_topic_that_was_created_again_are_all_stored_and_once(scene: SpanScene, count: int) -> None:
    dead = f"{scene.topic}.dead"
    scene.send(*of_stage(scene, 100, 101, 102, 103), topic=dead)
    assert scene.store() == 8
    delete(scene.broker, dead)
    make_again(scene.broker, dead)
    scene.send(*of_stage(scene, *range(200, 200 + count)), topic=dead)
    assert scene.store() == count
    assert scene.store() == 0
    assert scene.reasons().total() == 8 + count


def test_letters_that_anybody_wrote_replace_none_and_bring_no_text(scene: SpanScene) -> None:
    scene.store()
    stored = scene.stored()["dead_letters"]
    first = next(row for row in stored if (row["partition"], row["offset"]) == (0, 0))
    time_ms = str(round(first["time"].timestamp() * 1000))
    forged = of_stage(scene, 0, reason="too_big", timestamp=time_ms, detail="call 0800 1234")
    scene.send(*forged, *of_stage(scene, 100, 100, detail="call 0800 1234"), topic=f"{scene.topic}.dead")
    assert scene.store() == 1
    rows = scene.stored()["dead_letters"]
    assert [row for row in rows if row["offset"] != 100] == stored
    assert {row["detail"] for row in rows} == {
        f"stage assemble: {reason}; `ragtide dead-letters replay` says more, and sends it if the cause is repaired"
        for reason in ("not json", "not otlp", "no value")
    }


async def delete_first_record(broker: Broker, topic: str) -> None:
    async with admin_of(broker.bootstrap) as admin:
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=1)})


def test_positions_stay_when_retention_deletes_the_first_letters(scene: SpanScene) -> None:
    dead = f"{scene.topic}.dead"
    scene.send(*of_stage(scene, 100, 101), topic=dead)
    assert scene.store() == 6
    asyncio.run(delete_first_record(scene.broker, dead))
    assert scene.store() == 0
    scene.send(*of_stage(scene, 102), topic=dead)
    assert scene.store() == 1


def test_an_old_letter_has_the_time_at_which_it_was_sent(scene: SpanScene) -> None:
    dead, now_ms = f"{scene.topic}.dead", scene.sent_ms
    scene.sent_ms = now_ms - 86_400_000
    scene.send(*of_stage(scene, 100), topic=dead)
    scene.sent_ms = now_ms
    scene.send(*of_stage(scene, 101), topic=dead)
    assert scene.store() == 6
    times = scene.database.rows(
        "SELECT offset, now() - ingested_at AS age FROM dead_letters WHERE offset >= 100 ORDER BY offset"
    )
    assert [(row["offset"], round(row["age"] / 86_400)) for row in times] == [(100, 1), (101, 0)]


def test_without_a_stage_nothing_is_read(scene: SpanScene) -> None:
    settings = scene.of_stage()
    for name in ("spans_topic", "dead_letter_topic"):
        kafka = settings.kafka.model_copy(update={name: "nowhere"})
        assert store_stage_letters(kafka, settings.otel, scene.database) == 0
