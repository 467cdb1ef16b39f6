"""A lane and the transactions of those who send: what is aborted is nobody's, and its marks hold nothing back."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from ragtide.stream.kafka.consumer_groups import group_positions
from ragtide.stream.replay.topic import TopicSource
from ragtide.stream.settings.sections import KafkaSettings
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import Lane, committed, eventually, make_topics, send, trace

pytestmark = pytest.mark.kafka

COMMITTED = [f"c{n}" for n in range(40)]
LATE = [f"l{n}" for n in range(10)]


async def _sent(producer: AIOKafkaProducer, topic: str, names: list[str]) -> None:
    for name in names:
        await producer.send(topic, trace(name), partition=0)
    await producer.flush()


async def replayed(kafka: KafkaSettings) -> list[bytes]:
    source = TopicSource(kafka, kafka.topics, None, ahead_s=0, late_s=0, batch_records=100)
    return [record.value or b"" async for batch in source.read({}) for record in batch.records]


async def lags(kafka: KafkaSettings) -> list[int | None]:
    return [one.lag for one in await group_positions(kafka, {kafka.group("fast"): kafka.topics})]


def in_transactions(kafka: KafkaNode, topic: str, lane: Lane, settings: KafkaSettings) -> None:
    async def play() -> None:
        """Transactions that end one way or the other, while the lane reads."""
        producers = [
            AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=f"{topic}-{n}") for n in range(2)
        ]
        ended, still_open = producers
        for producer in producers:
            await producer.start()
        try:
            for n in range(0, len(COMMITTED), 10):
                async with ended.transaction():
                    await _sent(ended, topic, COMMITTED[n : n + 10])
                await ended.begin_transaction()
                await _sent(ended, topic, [f"aborted-{n}-{number}" for number in range(10)])
                await ended.abort_transaction()
            await still_open.begin_transaction()
            await _sent(still_open, topic, LATE)
            await asyncio.to_thread(eventually, lambda: len(lane.traces()) >= len(COMMITTED), 40, lane.logs)
            assert len(await replayed(settings)) == len(COMMITTED), "a replay ends where a transaction is open"
            await asyncio.to_thread(eventually, lambda: lane.metric("ragtide_lag_records") == 0, 10, lane.logs)
            await still_open.commit_transaction()
            await ended.begin_transaction()
            await _sent(ended, topic, ["aborted-at-the-end"])
            await ended.abort_transaction()
        finally:
            for producer in producers:
                await producer.stop()

    asyncio.run(play())


def test_aborted_records_are_never_evaluated_and_open_ones_wait(kafka: KafkaNode, tmp_path: Path) -> None:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(kafka, {topic: 1, f"{topic}.dead": 1})
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap, topics=(topic,), group_prefix=topic)
    with Lane(kafka, tmp_path, topic) as lane:
        in_transactions(kafka, topic, lane, settings)
        eventually(lambda: len(lane.traces()) == len(COMMITTED + LATE), 20, lane.logs)
        eventually(lambda: asyncio.run(lags(settings)) == [0], 20, lambda: committed(kafka, lane.group, topic, 1))
        send(kafka, topic, [(None, trace("after"))])
        eventually(lambda: "after" in lane.traces(), 20, lane.logs)
        assert lane.terminate() == 0, lane.logs()
    assert sorted(lane.traces()) == sorted([*COMMITTED, *LATE, "after"])
    assert asyncio.run(lags(settings)) == [0]
    found: list[Any] = asyncio.run(replayed(settings))
    assert len(found) == len(COMMITTED + LATE) + 1
