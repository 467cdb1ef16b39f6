"""The test node itself: what was written is there after a kill -9."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.infra.kafka_node import SCRIPT, KafkaNode

pytestmark = pytest.mark.kafka


async def _write(bootstrap: str, topic: str, count: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 2, 1)])
    await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    for number in range(count):
        await producer.send(topic, str(number).encode())
    await producer.stop()


async def _read(bootstrap: str, topic: str, count: int) -> set[int]:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    seen: set[int] = set()
    try:
        async with asyncio.timeout(60):
            while len(seen) < count:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    seen |= {int(record.value) for record in records}
    finally:
        await consumer.stop()
    return seen


def test_log_survives_kill_and_restart(tmp_path: Path) -> None:
    with KafkaNode(tmp_path / "node") as node:
        asyncio.run(_write(node.bootstrap, "kept", 100))
        node.kill()
        node.restart()
        assert asyncio.run(_read(node.bootstrap, "kept", 100)) == set(range(100))


def test_jars_are_pinned() -> None:
    pinned = (SCRIPT.parent / "SHA256SUMS").read_text().split()
    jars = {path.name for path in (SCRIPT.parent / "libs").glob("*.jar")}
    assert set(pinned[1::2]) == jars
