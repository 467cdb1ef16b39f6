"""Dead letters of stage `assemble`: they are stored, and sent to their topics again once the cause is mended."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.dead_letters.letters import Letters, Wanted
from ragtide.stream.dead_letters.spans import SpanReplay
from ragtide.stream.ingest.otel import decode_spans
from ragtide.stream.ingest.records import DeadLetter, Record
from ragtide.stream.replay.topic import TopicSource
from ragtide.stream.settings.loader import Settings
from ragtide.stream.stage_letters import store_stage_letters
from ragtide.stream.worker.assembly.rekeying import rekey
from ragtide.stream.worker.dead_letters import DeadLetters
from tests.infra.kafka_clients import producer_of
from tests.infra.kafka_node import KafkaNode
from tests.stream.assembly.otlp import batch, recorded_spans
from tests.stream.assembly.scene import expected
from tests.stream.assembly.stage_process import AssembleProcess, topics
from tests.stream.core.traffic import committed, eventually, make_topics, read, send
from tests.stream.dead_letters.scene import Scene, Sent
from tests.stream.otel.scene import RECORDED

pytestmark = [pytest.mark.clickhouse, pytest.mark.kafka, pytest.mark.timeout(300)]

PROTO = batch(recorded_spans("openinference_langchain", 1))
LARGE = batch([one for trace in range(2, 8) for one in recorded_spans("openinference_langchain", trace)])
JSON = (RECORDED / "genai_langchain.json").read_bytes()
JSON_OF_CHAIN = (RECORDED / "openinference_langchain.json").read_bytes()
HEADERS = [("tenant", b"museum"), ("dlq.topic", b"theirs")]
VALUES = (PROTO, JSON, b"neither", LARGE, None)
LARGEST_LETTER = 20_000
assert len(PROTO) < LARGEST_LETTER < len(LARGE)


def only(*, is_root: bool) -> bytes:
    """The recorded batch in JSON with its root, or with all other spans."""
    whole = json.loads(JSON_OF_CHAIN)
    for resource in whole["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            scope["spans"] = [one for one in scope["spans"] if bool(one.get("parentSpanId")) != is_root]
    return json.dumps(whole).encode()


def root_in_protobuf() -> bytes:
    whole = ExportTraceServiceRequest.FromString((RECORDED / "openinference_langchain.binpb").read_bytes())
    for resource in whole.resource_spans:
        for scope in resource.scope_spans:
            roots = [one for one in scope.spans if not one.parent_span_id]
            del scope.spans[:]
            scope.spans.extend(roots)
    written: bytes = whole.SerializeToString()
    return written


ROOT = root_in_protobuf()


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

    def messages(self) -> list[Record]:
        """Every message of the topic of spans, by partition and offset."""

        async def run() -> list[Record]:
            source = TopicSource(self.of_stage().kafka, [self.otlp], None, ahead_s=0, late_s=0, batch_records=100)
            return [record async for found in source.read({}) for record in found.records]

        return sorted(asyncio.run(run()), key=lambda one: (one.partition, one.offset))

    def store(self) -> int:
        settings = self.of_stage()
        return store_stage_letters(settings.kafka, settings.otel, self.database)

    def reasons(self) -> Counter[str]:
        return Counter(letter.reason for letter in Letters(self.database).find(Wanted()))

    def replay(self, *args: str) -> str:
        done = self.command("replay", *args)
        assert done.exit_code == 0, done.output
        return done.stdout


@pytest.fixture
def scene(kafka: KafkaNode, database: Database, monkeypatch: pytest.MonkeyPatch) -> SpanScene:
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
    assert scene.store() == 4, "sent again, as after a kill"
    assert scene.stored()["dead_letters"] == stored


def test_without_a_stage_nothing_is_read(scene: SpanScene) -> None:
    settings = scene.of_stage()
    for name in ("spans_topic", "dead_letter_topic"):
        kafka = settings.kafka.model_copy(update={name: "nowhere"})
        assert store_stage_letters(kafka, settings.otel, scene.database) == 0


def test_mended_ones_go_to_their_topic_as_they_came_and_each_once(scene: SpanScene) -> None:
    before = scene.messages()
    told = scene.replay("--by", "ann")
    assert told == "spans: 2 of 4 dead letters sent to their topics again, 2 failed again, 0 in no topic any more\n"
    after = scene.messages()
    new = [one for one in after if (one.partition, one.offset) not in {(at.partition, at.offset) for at in before}]
    assert sorted((one.key, one.value, tuple(one.headers)) for one in new) == sorted(
        (f"key {number}".encode(), value, tuple(HEADERS)) for number, value in ((0, PROTO), (3, LARGE))
    )
    assert scene.reasons() == {"not_otlp": 1, "no_value": 1}
    replayed = Letters(scene.database).find(Wanted(state="replayed"))
    assert {(letter.size, letter.actor) for letter in replayed} == {(len(PROTO), "ann"), (len(LARGE), "ann")}
    assert "spans: 0 of 2 dead letters sent to their topics again, 2 failed again" in scene.replay()
    assert scene.messages() == after


def test_listed_with_the_others_and_chosen_by_topic_and_reason(scene: SpanScene) -> None:
    scene.store()
    listed = json.loads(scene.command("list", "--each", "--json").stdout)
    assert {one["topic"] for one in listed} == {scene.otlp}
    assert (
        "1 more" not in scene.command("show", f"{scene.otlp}/1/1").output
    )  # too large for the letters: from its topic
    assert scene.replay("--reason", "no_value") == (
        "spans: 0 of 1 dead letters sent to their topics again, 1 failed again, 0 in no topic any more\n"
    )
    assert scene.command("drop", "--reason", "no_value", "--yes").exit_code == 0
    assert "2 of 3 dead letters sent" in scene.replay("--topic", scene.otlp)


def test_another_run_takes_no_spans(scene: SpanScene) -> None:
    before = scene.messages()
    assert "4 are messages of spans, which are replayed into live only" in scene.replay("--run", "mended")
    assert scene.messages() == before
    assert scene.reasons().total() == 4


def test_a_topic_that_the_stage_no_longer_reads_gets_nothing(scene: SpanScene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.store()
    before = scene.messages()
    monkeypatch.setenv("RAGTIDE_OTEL__TOPICS", '["another"]')
    assert "4 are of topics that otel.topics and otel.log_topics do not name" in scene.replay()
    assert scene.messages() == before


def test_what_was_sent_and_not_marked_is_sent_again_and_then_no_more(scene: SpanScene) -> None:
    scene.store()
    settings, letters = scene.of_stage(), Letters(scene.database)

    def killed(records: Sequence[Record]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SpanReplay(settings.kafka, settings.otel, scene.database, killed).run(letters.find(Wanted()))
    assert scene.reasons().total() == 4
    count = len(scene.messages())
    assert count > len(VALUES)
    assert "2 of 4 dead letters sent" in scene.replay()
    assert len(scene.messages()) == count + 2
    assert "0 of 2 dead letters sent" in scene.replay()


def newest_traces(scene: SpanScene) -> dict[bytes, bytes]:
    return {one.key: one.value for one in read(scene.broker, f"{scene.prefix}.traces", 9, 3)}


def test_a_trace_whose_root_was_a_dead_letter_is_whole_though_the_stage_forgot_the_rest(
    kafka: KafkaNode, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = SpanScene(kafka, database)
    scene.topic = scene.prefix  # whose dead letters are those of the process
    monkeypatch.setenv("RAGTIDE_KAFKA__SPANS_TOPIC", f"{scene.prefix}.spans")
    monkeypatch.setenv("RAGTIDE_OTEL__TOPICS", f'["{scene.otlp}"]')
    spans = decode_spans(JSON_OF_CHAIN).spans
    wanted = expected(spans)
    send(kafka, scene.otlp, [(None, only(is_root=False))])
    soon: dict[str, Any] = {"max_open_s": 3.0, "late_s": 1.0, "quiet_s": 0.5}
    wrong = {"encodings": {scene.otlp: "otlp_json"}, **soon}
    with AssembleProcess(kafka, tmp_path, scene.prefix, wrong, {"dead_letter_ratio": 1.0}) as stage:
        eventually(lambda: stage.metric("ragtide_spans_total") == len(spans) - 1, 60, stage.logs)
        send(kafka, scene.otlp, [(None, ROOT)])
        eventually(lambda: stage.metric("ragtide_dead_letters_total") == 1, 60, stage.logs)
        eventually(lambda: sum(committed(kafka, stage.group, f"{scene.prefix}.spans", 3).values()) == 2, 60, stage.logs)
        assert stage.terminate() == 0, stage.logs()
    assert "1 of 1 dead letters sent" in scene.replay()
    with AssembleProcess(kafka, tmp_path, scene.prefix, {**soon, "max_open_s": 60.0}) as stage:
        eventually(lambda: wanted.keys() <= newest_traces(scene).keys(), 60, stage.logs)
        assert stage.terminate() == 0, stage.logs()
    found = newest_traces(scene)
    assert {key: found[key] for key in wanted} == wanted


def test_the_stage_makes_the_trace_once_its_setting_is_mended(
    kafka: KafkaNode, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = SpanScene(kafka, database)
    scene.topic = scene.prefix  # whose dead letters are those of the process
    monkeypatch.setenv("RAGTIDE_KAFKA__SPANS_TOPIC", f"{scene.prefix}.spans")
    monkeypatch.setenv("RAGTIDE_OTEL__TOPICS", f'["{scene.otlp}"]')
    send(kafka, scene.otlp, [(b"k", PROTO)])
    wrong: dict[str, Any] = {"encodings": {scene.otlp: "otlp_json"}}
    with AssembleProcess(kafka, tmp_path, scene.prefix, wrong, {"dead_letter_ratio": 1.0}) as stage:
        eventually(lambda: stage.metric("ragtide_dead_letters_total") == 1, 60, stage.logs)
        assert stage.terminate() == 0, stage.logs()
    assert "1 of 1 dead letters sent" in scene.replay()
    with AssembleProcess(kafka, tmp_path, scene.prefix) as stage:
        eventually(lambda: len(read(kafka, f"{scene.prefix}.traces", 1, 2)) == 1, 60, stage.logs)
        assert stage.terminate() == 0, stage.logs()
    [trace] = read(kafka, f"{scene.prefix}.traces", 1)
    assert json.loads(trace.value)["trace_id"] == f"{1:032x}"
    assert scene.reasons() == {}
