"""A topic with good and bad records, taken in as lane `fast` does: rows, and letters in table and topic."""

import asyncio
import random
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from click.testing import CliRunner, Result

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.stream.assembly import assemble
from ragtide.stream.cli import main
from ragtide.stream.ingest.records import Record
from ragtide.stream.replay.topic import TopicSource
from ragtide.stream.settings.loader import Settings
from ragtide.stream.worker.dead_letters import DeadLetters
from tests.infra.fresh_database import reached
from tests.infra.kafka_clients import producer_of
from tests.stream.core.traffic import Broker, make_topics

SMALL = 2000  # ingest.max_bytes of live traffic


class Sent(NamedTuple):
    """A message, and where it goes."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    partition: int = 0


@dataclass
class Scene:
    """Its topics are new; `max_bytes` is what commands are given, where live traffic had `SMALL`."""

    broker: Broker
    database: Database
    largest_letter: int = 1 << 20
    topic: str = field(default_factory=lambda: f"rag.{uuid.uuid4().hex[:8]}")
    sent_ms: int = field(default_factory=lambda: int(time.time() * 1000) - 600_000)  # of the latest message

    def __post_init__(self) -> None:
        make_topics(self.broker, {self.topic: 2})
        make_topics(self.broker, {f"{self.topic}.dead": 1}, {"max.message.bytes": str(self.largest_letter)})

    def settings(self, max_bytes: int = SMALL) -> Settings:
        return Settings.model_validate(
            {
                "kafka": {
                    "bootstrap_servers": self.broker.bootstrap,
                    "topics": [self.topic],
                    "dead_letter_topic": f"{self.topic}.dead",
                },
                "evaluators": {"enabled": ["inputs"]},
                "ingest": {"max_bytes": max_bytes},
            }
        )

    def send(self, *messages: Sent, topic: str = "") -> None:
        """In order, one a second by their timestamps."""

        async def produce() -> None:
            async with producer_of(self.broker.bootstrap) as producer:
                for sent in messages:
                    self.sent_ms += 1000
                    where = {"partition": sent.partition, "timestamp_ms": self.sent_ms, "headers": list(sent.headers)}
                    await producer.send_and_wait(topic or self.topic, sent.value, sent.key, **where)

        asyncio.run(produce())

    def take_in(self, *, send_letters: bool = True) -> None:
        """Every record of the topic from the beginning, however often it was taken in before."""
        settings = self.settings()
        pipeline = assemble(settings, "fast").pipeline

        async def take() -> None:
            letters = DeadLetters(settings.kafka, "fast", random.Random(1))
            await letters.start()
            source = TopicSource(settings.kafka, [self.topic], None, ahead_s=0, late_s=0, batch_records=100)
            try:
                async for batch in source.read({}):
                    done = await asyncio.to_thread(pipeline.process, batch.records)
                    if send_letters:
                        await letters.send(done.dead)
                    ClickHouseSink(self.database).write(done.block)
            finally:
                await letters.stop()

        asyncio.run(take())

    def records(self) -> dict[tuple[int, int], Record]:
        """Every record of the topic, by partition and offset."""

        async def read() -> list[Record]:
            kafka = self.settings().kafka
            source = TopicSource(kafka, [self.topic], None, ahead_s=0, late_s=0, batch_records=100)
            return [record async for batch in source.read({}) for record in batch.records]

        return {(record.partition, record.offset): record for record in asyncio.run(read())}

    def command(self, *args: str, typed: str | None = None, max_bytes: int = 1 << 20) -> Result:
        """`ragtide dead-letters ...`."""
        variables = {
            "RAGTIDE_CONFIG": None,
            "COLUMNS": "200",
            **reached(self.database),
            "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": self.broker.bootstrap,
            "RAGTIDE_KAFKA__TOPICS": f'["{self.topic}"]',
            "RAGTIDE_KAFKA__DEAD_LETTER_TOPIC": f"{self.topic}.dead",
            "RAGTIDE_EVALUATORS__ENABLED": '["inputs"]',
            "RAGTIDE_INGEST__MAX_BYTES": str(max_bytes),
        }
        return CliRunner().invoke(main, ["dead-letters", *args], input=typed, env=variables)

    def stored(self, run_id: str = "live") -> dict[str, list[dict[str, Any]]]:
        """What the tables have of a run, without the clock's columns; letters and marks as they hold."""
        return {
            table: self.database.rows(
                f"SELECT * EXCEPT ({clock}) FROM {table} FINAL WHERE run_id = {{run:String}} ORDER BY ALL",
                {"run": run_id},
            )
            for table, clock in (
                ("traces", "ingested_at"),
                ("trace_texts", "ingested_at"),
                ("scores", "ingested_at"),
                ("dead_letters", "ingested_at"),
                ("dead_letter_marks", "at"),
            )
        }
