"""Dead letters of stage `assemble`: once the cause is repaired, their spans are sent to kafka.spans_topic."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import DeadLetterRow
from ragtide.stream.dead_letters.letters import Letters, Wanted
from ragtide.stream.dead_letters.spans import SpanReplay
from ragtide.stream.ingest.otel import decode_spans
from ragtide.stream.ingest.records import Record
from ragtide.stream.replay.runs import Runs
from tests.infra.kafka_node import KafkaNode
from tests.stream.assembly.scene import expected
from tests.stream.assembly.stage_process import AssembleProcess
from tests.stream.core.traffic import committed, eventually, make_topics, read, send
from tests.stream.dead_letters.span_scene import LARGE, PROTO, SpanScene, refused_spans
from tests.stream.otel.scene import RECORDED

pytestmark = [pytest.mark.clickhouse, pytest.mark.kafka, pytest.mark.timeout(300)]

JSON_OF_CHAIN = (RECORDED / "openinference_langchain.json").read_bytes()


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


@pytest.fixture
def scene(kafka: KafkaNode, database: Database, monkeypatch: pytest.MonkeyPatch) -> SpanScene:
    return refused_spans(kafka, database, monkeypatch)


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


def test_a_topic_that_takes_no_spans_is_named_and_nothing_is_marked_but_what_it_took(
    scene: SpanScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = f"{scene.prefix}.refusing"
    make_topics(scene.broker, {refusing: 1}, {"message.timestamp.before.max.ms": "0"})  # too old after a millisecond
    scene.store()
    for topic, words in ((refusing, "does not accept messages"), (f"{scene.prefix}.none", "has no topic")):
        monkeypatch.setenv("RAGTIDE_KAFKA__SPANS_TOPIC", topic)
        done = scene.command("replay")
        assert done.exit_code == 2, done.output
        assert words in done.output
        assert f"{topic} (kafka.spans_topic)" in done.output
        assert scene.reasons().total() == 4 - len(scene.messages(refusing))


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
