"""What was stored of each trace and of each dead letter, to hold against what was sent; a doubled row shows."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from aiokafka import TopicPartition

from ragtide.sinks.clickhouse.database import Database
from tests.chaos.ledger import Ledger, Sent
from tests.failures.site import Place
from tests.infra.kafka_clients import consumer_of
from tests.stream.core.traffic import Broker

Rows = Counter[tuple[Any, ...]]
_QUESTION_WORDS = 4  # of the ledger's question


def expected_rows(ledger: Ledger) -> Rows:
    """A trace, its text and two scores of each id."""
    rows: Rows = Counter()
    for sent in ledger.traces.values():
        at = (sent.trace_id, sent.app, sent.time.replace(second=0, microsecond=0))
        rows["traces", *at, sent.latency_s] += 1
        rows["trace_texts", *at, " ".join(["word"] * sent.answer_words)] += 1
        for evaluator, metrics in _metrics(sent).items():
            rows["scores", *at, evaluator, *sorted(metrics.items())] += 1
    return rows


def stored_rows(database: Database) -> Rows:
    """The same as the tables have it."""
    rows: Rows = Counter()
    for row in database.rows(_live("latency_s", "traces")):
        rows["traces", *_at(row), row["latency_s"]] += 1
    for row in database.rows(_live("answer", "trace_texts")):
        rows["trace_texts", *_at(row), row["answer"]] += 1
    for row in database.rows(_live("evaluator, metrics", "scores")):
        rows["scores", *_at(row), row["evaluator"], *sorted(row["metrics"].items())] += 1
    return rows


def stored_dead_letters(database: Database) -> Counter[Place]:
    """Where each lay."""
    rows = database.rows("SELECT partition, offset FROM dead_letters FINAL WHERE run_id = 'live'")
    return Counter(Place(row["partition"], row["offset"]) for row in rows)


def sent_dead_letters(broker: Broker, topic: str) -> dict[Place, bytes]:
    """What the dead-letter topic (of one partition) holds; where one was sent twice, it is the same one."""

    async def consume() -> dict[Place, bytes]:
        async with consumer_of(broker.bootstrap, enable_auto_commit=False) as consumer:
            only = TopicPartition(topic, 0)
            consumer.assign([only])
            await consumer.seek_to_beginning(only)
            end = (await consumer.end_offsets([only]))[only]
            found = {}
            while await consumer.position(only) < end:
                for record in (await consumer.getmany(only, timeout_ms=200)).get(only, ()):
                    said = dict(record.headers)
                    found[Place(int(said["dlq.partition"]), int(said["dlq.offset"]))] = record.value
            return found

    return asyncio.run(consume())


def _live(columns: str, table: str) -> str:
    return f"SELECT trace_id, app, toStartOfMinute(time) AS minute, {columns} FROM {table} FINAL WHERE run_id = 'live'"


def _at(row: dict[str, Any]) -> tuple[str, str, datetime]:
    return row["trace_id"], row["app"], row["minute"].replace(tzinfo=UTC)


def _metrics(sent: Sent) -> dict[str, dict[str, float]]:
    recorded = {} if sent.latency_s is None else {"latency_seconds": sent.latency_s}
    return {
        "operations": {**recorded, "error": 0.0, "empty_answer": float(sent.answer_words == 0)},
        "inputs": {"question_words": float(_QUESTION_WORDS), "answer_words": float(sent.answer_words)},
    }
