"""Dead letters of stage `assemble`: they are stored, and sent to their topics again once the cause is mended."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import DeadLetterRow
from ragtide.stream.dead_letters.letters import Letters, Wanted
from ragtide.stream.dead_letters.spans import SpanReplay
from ragtide.stream.ingest.otel import decode_spans
from ragtide.stream.ingest.records import DeadLetter, Record
from ragtide.stream.replay.runs import Runs
from ragtide.stream.replay.topic import TopicSource
from ragtide.stream.settings.loader import Settings
from ragtide.stream.stage_letters import store_stage_letters
from ragtide.stream.worker.assembly.rekeying import rekey
from ragtide.stream.worker.dead_letters import DeadLetters
from tests.failures.topics import delete, make_again
from tests.infra.kafka_clients import admin_of, producer_of
from tests.infra.kafka_node import KafkaNode
from tests.stream.assembly.otlp import batch, recorded_spans
from tests.stream.assembly.scene import expected
from tests.stream.assembly.stage_process import AssembleProcess, topics
from tests.stream.core.traffic import Broker, committed, eventually, make_topics, read, send
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


def test_the_spans_of_mended_ones_go_where_the_stage_sends_them_and_each_once(scene: SpanScene) -> None:
    before = scene.messages()
    said = scene.replay("--by", "ann")
    assert said == (
        f"spans: 2 of 4 dead letters sent to {scene.prefix}.spans, 2 failed again, 0 in no topic any more\n"
    )
    assert scene.messages() == before
    after = scene.parts()
    assert after == scene.expected_parts(PROTO, LARGE)
    assert len(after) == 7
    assert scene.reasons() == {"not_otlp": 1, "no_value": 1}
    replayed = Letters(scene.database).find(Wanted(state="replayed"))
    assert {(letter.size, letter.actor) for letter in replayed} == {(len(PROTO), "ann"), (len(LARGE), "ann")}
    assert f"spans: 0 of 2 dead letters sent to {scene.prefix}.spans, 2 failed again" in scene.replay()
    assert scene.parts() == after


def test_listed_with_the_others_and_chosen_by_topic_and_reason(scene: SpanScene) -> None:
    scene.store()
    listed = json.loads(scene.command("list", "--each", "--json").stdout)
    assert {one["topic"] for one in listed} == {scene.otlp}
    for place, value in ((f"{scene.otlp}/0/0", PROTO), (f"{scene.otlp}/1/1", LARGE)):
        shown = scene.command("show", place)  # the large one is not in the dead-letter topic: from its own
        assert shown.output.count("RunnableSequence") == value.count(b"RunnableSequence") > 0
    assert scene.replay("--reason", "no_value") == (
        f"spans: 0 of 1 dead letters sent to {scene.prefix}.spans, 1 failed again, 0 in no topic any more\n"
    )
    assert scene.command("drop", "--reason", "no_value", "--yes").exit_code == 0
    assert "2 of 3 dead letters sent" in scene.replay("--topic", scene.otlp)


def test_another_run_takes_no_spans(scene: SpanScene) -> None:
    assert "4 are messages of spans, which are replayed into live only" in scene.replay("--run", "mended")
    assert scene.parts() == {}
    assert scene.reasons().total() == 4
    assert Runs(scene.database).find("mended") is None


def test_a_run_that_only_has_spans_left_is_completed(scene: SpanScene) -> None:
    scene.store()
    lost = DeadLetterRow("live", scene.topic, 0, 0, datetime.now(UTC), "not_json", "", "decode", 1, "0" * 64)
    scene.database.insert("dead_letters", [lost])
    assert "run mended: 0 of 1 dead letters replayed" in scene.replay("--run", "mended")
    runs, letters = Runs(scene.database), Letters(scene.database)
    done = runs.find("mended")
    assert done is not None
    runs.store(done._replace(state="started", version=done.version + 1))
    letters.mark([one.position for one in letters.find(Wanted()) if one.topic == lost.topic], "mended", "replayed", "")
    assert "run mended: 0 of 0 dead letters replayed" in scene.replay("--run", "mended")
    left = runs.find("mended")
    assert left is not None
    assert left.state == "completed"


def test_of_a_topic_that_the_stage_no_longer_reads_nothing_is_sent(
    scene: SpanScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.store()
    monkeypatch.setenv("RAGTIDE_OTEL__TOPICS", '["another"]')
    said = scene.replay()
    assert "4 are of topics that otel.topics and otel.log_topics do not name: stage assemble does not read them" in said
    assert scene.parts() == {}


def test_a_topic_that_takes_no_spans_is_named_and_nothing_is_marked(
    scene: SpanScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = f"{scene.prefix}.refusing"
    make_topics(scene.broker, {refusing: 1}, {"message.timestamp.before.max.ms": "0"})  # every message is too old
    scene.store()
    for topic, words in ((refusing, "does not accept messages"), (f"{scene.prefix}.none", "has no topic")):
        monkeypatch.setenv("RAGTIDE_KAFKA__SPANS_TOPIC", topic)
        done = scene.command("replay")
        assert done.exit_code == 2, done.output
        assert words in done.output
        assert f"{topic} (kafka.spans_topic)" in done.output
        assert scene.reasons().total() == 4


def test_spans_that_are_too_large_for_their_topic_stay_dead_letters(
    scene: SpanScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = f"{scene.prefix}.small"
    make_topics(scene.broker, {small: 1}, {"max.message.bytes": "1000"})
    scene.store()
    monkeypatch.setenv("RAGTIDE_KAFKA__SPANS_TOPIC", small)
    assert "0 of 4 dead letters sent" in scene.replay()
    assert scene.reasons() == {"too_big": 2, "not_otlp": 1, "no_value": 1}
    monkeypatch.setenv("RAGTIDE_KAFKA__SPANS_TOPIC", f"{scene.prefix}.spans")
    assert "2 of 4 dead letters sent" in scene.replay()


def test_what_was_sent_and_not_marked_is_sent_again_and_never_doubled(scene: SpanScene) -> None:
    scene.store()
    settings, letters = scene.of_stage(), Letters(scene.database)
    wanted = scene.expected_parts(PROTO, LARGE)

    def killed(records: Sequence[Record]) -> None:
        raise KeyboardInterrupt

    grown = []
    for _ in range(4):
        before = scene.parts().total()
        with pytest.raises(KeyboardInterrupt):
            SpanReplay(settings.kafka, settings.otel, scene.database, killed).run(letters.find(Wanted()))
        grown.append(scene.parts().total() - before)
        assert scene.parts().keys() <= wanted.keys()
    assert max(grown) <= 2 * wanted.total()
    assert scene.reasons().total() == 4
    assert "2 of 4 dead letters sent" in scene.replay()
    done = scene.parts()
    assert done.keys() == wanted.keys()
    assert "0 of 2 dead letters sent" in scene.replay()
    assert scene.parts() == done


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
    time.sleep(2 * (soon["max_open_s"] + soon["late_s"]))  # the stage is stopped for longer than it keeps a trace
    with AssembleProcess(kafka, tmp_path, scene.prefix, soon) as stage:
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
