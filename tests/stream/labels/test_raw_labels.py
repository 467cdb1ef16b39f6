"""Whatever a producer puts on the labels' topic is a label or a dead letter, and reading goes on."""

import asyncio
import json
import random
import time
import uuid
from contextlib import suppress

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.labels.reader import LabelReader
from ragtide.stream.settings.loader import Settings
from ragtide.stream.telemetry.registry import Telemetry
from tests.infra.kafka_node import KafkaNode
from tests.infra.raw_producer import CODECS, RawRecord, batch, body_of, compress, corrupt_lz4, produce, raw_batch
from tests.stream.core.traffic import committed, make_topics

pytestmark = [pytest.mark.clickhouse, pytest.mark.kafka, pytest.mark.timeout(120)]

LABEL = json.dumps({"trace_id": "t-1", "expected": ["yes"]}).encode()


def test_hostile_records_on_the_labels_topic_stop_no_label(kafka: KafkaNode, database: Database) -> None:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    labels = f"{topic}.labels"
    make_topics(kafka, {topic: 1, labels: 1, f"{topic}.dead": 1})
    names = {"topics": [topic], "labels_topic": labels, "dead_letter_topic": f"{topic}.dead", "group_prefix": topic}
    settings = Settings.model_validate({"kafka": {"bootstrap_servers": kafka.bootstrap, **names}})
    hostile = {
        "no_value": [batch([RawRecord()]), batch([RawRecord(key=b"gone")])],
        "header_not_utf8": [batch([RawRecord(LABEL, None, [(b"\xff", b"")])])],
        "batch_corrupt": [corrupt_lz4([RawRecord(b"x" * 1000)])],
        "batch_too_large": [raw_batch(compress("zstd", body_of([RawRecord(bytes(64 << 20))])), 1, -1, CODECS["zstd"])],
    }
    produce(kafka.bootstrap, labels, [one for batches in hostile.values() for one in batches])
    produce(kafka.bootstrap, labels, [batch([RawRecord(LABEL, b"t-1")], int(time.time() * 1000))])

    async def read() -> None:
        reader = LabelReader(settings, database, Telemetry(), random.Random(1))
        reading = asyncio.create_task(reader.run())
        while (await asyncio.to_thread(committed, kafka, f"{topic}-labels", labels, 1))[0] < 6 and not reading.done():
            await asyncio.sleep(0.2)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading

    asyncio.run(asyncio.wait_for(read(), 60))
    assert database.rows("SELECT trace_id FROM labels FINAL") == [{"trace_id": "t-1"}]
    rows = database.rows("SELECT reason, count() AS n FROM dead_letters FINAL GROUP BY reason")
    assert {row["reason"]: row["n"] for row in rows} == {reason: len(batches) for reason, batches in hostile.items()}
