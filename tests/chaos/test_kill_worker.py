"""A worker killed in the middle of 20,000 traces on Apache Kafka loses none, counts none twice."""

import asyncio
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.chaos.ledger import Ledger, make
from tests.chaos.processes import Ragtide, wait_until, write_settings
from tests.chaos.windows import stored_windows
from tests.infra.kafka_clients import producer_of
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import make_topics

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.chaos, pytest.mark.timeout(300)]

COUNT = 20_000


async def _produce(bootstrap: str, topic: str, ledger: Ledger) -> None:
    async with producer_of(bootstrap, linger_ms=20, enable_idempotence=True) as producer:
        for sent in ledger.messages:
            await producer.send(topic, sent.message(), key=sent.trace_id.encode())


def _distinct(database: Database) -> int:
    return int(database.rows("SELECT uniqExact(trace_id) AS n FROM traces")[0]["n"])


def test_kill_9_leaves_every_trace_once_and_right_windows(
    kafka: KafkaNode, clickhouse_server: EmbeddedClickHouse, database: Database, tmp_path: Path
) -> None:
    topic = f"chaos-{uuid.uuid4().hex[:8]}"
    ledger = make(COUNT, seed=11, now=datetime.now(UTC))
    make_topics(kafka, {topic: 4, f"{topic}.dead": 1, f"{topic}.jobs": 1})
    asyncio.run(_produce(kafka.bootstrap, topic, ledger))
    settings = clickhouse_server.settings.model_copy(update={"database": database.settings.database})
    config = write_settings(tmp_path / "ragtide.toml", kafka.bootstrap, topic, settings)
    log = tmp_path / "worker.log"

    first = Ragtide("worker", "--lane", "fast", config=config, log=log)
    wait_until(lambda: _distinct(database) > 2_000, 60, f"2,000 traces stored; see {log}")
    first.kill()
    assert _distinct(database) < COUNT, "killed too late to prove anything"

    second = Ragtide("worker", "--lane", "fast", config=config, log=log)
    wait_until(lambda: _distinct(database) == COUNT, 120, f"every trace stored; see {log}")
    jobs = Ragtide("jobs", config=config, log=tmp_path / "jobs.log")
    expected = ledger.windows()
    wait_until(lambda: stored_windows(database) == expected, 90, f"windows right; see {tmp_path}")
    assert second.stop() == 0
    assert jobs.stop() == 0

    final = database.rows("SELECT trace_id, latency_s FROM traces FINAL WHERE run_id = 'live'")
    assert {row["trace_id"]: row["latency_s"] for row in final} == {
        trace_id: sent.latency_s for trace_id, sent in ledger.traces.items()
    }
    assert len(final) == COUNT
