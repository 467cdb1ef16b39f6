"""Messages of spans that stage `assemble` could not read, and their dead letters, on a real broker."""

import asyncio
import random
from collections import Counter

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.dead_letters.letters import Letters, Wanted
from ragtide.stream.ingest.records import DeadLetter, Record
from ragtide.stream.replay.topic import TopicSource
from ragtide.stream.settings.loader import Settings
from ragtide.stream.stage_letters import store_stage_letters
from ragtide.stream.worker.assembly.rekeying import rekey
from ragtide.stream.worker.dead_letters import DeadLetters
from tests.infra.kafka_clients import producer_of
from tests.infra.kafka_node import KafkaNode
from tests.stream.assembly.otlp import batch, recorded_spans
from tests.stream.assembly.stage_process import topics
from tests.stream.core.traffic import make_topics
from tests.stream.dead_letters.scene import Scene
from tests.stream.otel.scene import RECORDED

PROTO = batch(recorded_spans("openinference_langchain", 1))
LARGE = batch([one for trace in range(2, 8) for one in recorded_spans("openinference_langchain", trace)])
JSON = (RECORDED / "genai_langchain.json").read_bytes()
HEADERS = [("tenant", b"museum"), ("dlq.topic", b"theirs")]
VALUES = (PROTO, JSON, b"neither", LARGE, None)
LARGEST_LETTER = 20_000
assert len(PROTO) < LARGEST_LETTER < len(LARGE)


class SpanScene(Scene):
    """A topic of spans whose messages in protobuf cannot be read with `otel.encodings` = `otlp_json`."""

    def __post_init__(self) -> None:
        self.prefix = topics(self.broker)
        self.topic = f"{self.prefix}.other"
        make_topics(self.broker, {f"{self.topic}.dead": 2}, {"max.message.bytes": str(LARGEST_LETTER)})

    @property
    def otlp(self) -> str:
        return f"{self.prefix}.otlp"

    def of_stage(self, encoding: str = "otlp") -> Settings:
        kafka = {
            "bootstrap_servers": self.broker.bootstrap,
            "spans_topic": f"{self.prefix}.spans",
            "dead_letter_topic": f"{self.topic}.dead",
        }
        otel = {"topics": [self.otlp], "encodings": {self.otlp: encoding}}
        return Settings.model_validate({"kafka": kafka, "otel": otel})

    def refuse(self, encoding: str) -> list[DeadLetter]:
        """Send what the stage cannot read of its topic to the dead letters, as it does."""
        settings = self.of_stage(encoding)
        dead = rekey(self.messages(), settings.otel, settings.kafka.max_record_bytes).dead

        async def run() -> None:
            letters = DeadLetters(settings.kafka, "assemble", random.Random(1))
            await letters.start()
            try:
                await letters.send(dead)
            finally:
                await letters.stop()

        asyncio.run(run())
        return dead

    def messages(self, topic: str = "") -> list[Record]:
        """Every message of the topic of spans, or of another one, by partition and offset."""

        async def run() -> list[Record]:
            source = TopicSource(
                self.of_stage().kafka, [topic or self.otlp], None, ahead_s=0, late_s=0, batch_records=100
            )
            return [record async for found in source.read({}) for record in found.records]

        return sorted(asyncio.run(run()), key=lambda one: (one.partition, one.offset))

    def parts(self) -> Counter[tuple[bytes | None, bytes | None]]:
        """The messages of kafka.spans_topic."""
        return Counter((one.key, one.value) for one in self.messages(f"{self.prefix}.spans"))

    def expected_parts(self, *values: bytes) -> Counter[tuple[bytes | None, bytes | None]]:
        """What the stage makes of each of these messages."""
        settings, records = self.of_stage(), {one.value: one for one in self.messages()}
        found = [rekey([records[value]], settings.otel, settings.kafka.max_record_bytes) for value in values]
        return Counter((output.key, output.value) for done in found for output in done.outputs)

    def store(self) -> int:
        settings = self.of_stage()
        return store_stage_letters(settings.kafka, settings.otel, self.database)

    def reasons(self) -> Counter[str]:
        return Counter(letter.reason for letter in Letters(self.database).find(Wanted()))

    def replay(self, *args: str) -> str:
        done = self.command("replay", *args)
        assert done.exit_code == 0, done.output
        return done.stdout


def refused_spans(kafka: KafkaNode, database: Database, monkeypatch: pytest.MonkeyPatch) -> SpanScene:
    """A scene with messages, and letters of all but one of them."""
    made = SpanScene(kafka, database)
    monkeypatch.setenv("RAGTIDE_KAFKA__SPANS_TOPIC", f"{made.prefix}.spans")
    monkeypatch.setenv("RAGTIDE_OTEL__TOPICS", f'["{made.otlp}"]')

    async def produce() -> None:
        async with producer_of(kafka.bootstrap) as producer:
            for number, value in enumerate(VALUES):
                place = {"partition": number % 2, "headers": HEADERS}
                await producer.send_and_wait(made.otlp, value, f"key {number}".encode(), **place)

    asyncio.run(produce())
    assert len(made.refuse("otlp_json")) == 4, "all but the one in JSON"
    return made
