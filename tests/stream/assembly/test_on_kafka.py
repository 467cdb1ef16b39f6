"""Stage `assemble` on Apache Kafka: spans in, traces out, kill -9 in between."""

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.cli import main
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.otel import decode_logs, decode_spans, kind_of
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.settings.sections import IngestSettings
from tests.stream.assembly.otlp import batch, recorded_spans
from tests.stream.assembly.scene import expected
from tests.stream.assembly.stage_process import PARTITIONS, AssembleProcess, topics
from tests.stream.core.traffic import Broker, committed, eventually, make_topics, read, send
from tests.stream.otel.scene import RECORDED

pytestmark = pytest.mark.kafka

PIPELINES = ("openinference_langchain", "openinference_llama_index", "traceloop_langchain", "langfuse_sdk")
ENDLESS = 100_000


def pipeline(number: int) -> str:
    return PIPELINES[number % len(PIPELINES)]


def wanted(numbers: range) -> dict[bytes, bytes]:
    return {
        key: value
        for number in numbers
        for key, value in expected(decode_spans(batch(recorded_spans(pipeline(number), number))).spans).items()
    }


def batches(numbers: range, rng: random.Random, size: int = 20) -> list[tuple[bytes | None, bytes | None]]:
    """The spans of these traces, shuffled over messages that mix traces, without keys."""
    parts = [part for number in numbers for part in recorded_spans(pipeline(number), number)]
    rng.shuffle(parts)
    return [(None, batch(parts[at : at + size])) for at in range(0, len(parts), size)]


def sent(broker: Broker, prefix: str, count: int = ENDLESS, timeout_s: float = 5.0) -> list[tuple[bytes, bytes]]:
    return [(one.key, one.value) for one in read(broker, f"{prefix}.traces", count, timeout_s)]


def test_spans_in_any_order_without_keys_become_traces_that_lanes_read(kafka: Broker, tmp_path: Path) -> None:
    prefix = topics(kafka)
    send(kafka, f"{prefix}.otlp", batches(range(1, 41), random.Random(1)))
    with AssembleProcess(kafka, tmp_path, prefix) as stage:
        eventually(lambda: len(sent(kafka, prefix, 40)) == 40, 60, stage.logs)
        eventually(lambda: stage.metric("ragtide_traces_assembled_total") == 40, 10, stage.logs)
        eventually(lambda: stage.metric("ragtide_traces_open") == 0, 10, stage.logs)
        assert stage.terminate() == 0, stage.logs()
    records = read(kafka, f"{prefix}.traces", ENDLESS, 5)
    assert {one.key: one.value for one in records} == wanted(range(1, 41))
    assert len(records) == 40, "without a restart each trace is sent once"
    limits = Limits.of(IngestSettings(), RetentionSettings(), timely=False)
    for one in records:
        stored = StoredRecord(one.topic, one.partition, one.offset, one.timestamp, one.key, one.value)
        assert decode_trace(stored, limits).trace.trace_id == one.key.decode()


def test_a_kill_in_the_middle_loses_nothing_and_the_last_message_of_each_trace_is_whole(
    kafka: Broker, tmp_path: Path
) -> None:
    prefix, rng, numbers = topics(kafka), random.Random(2), range(1, 151)
    messages = batches(numbers, rng, 5)
    parts = [messages[at::5] for at in range(5)]  # every trace lies in all of them
    quick = {"quiet_s": 0.5, "late_s": 600.0}
    for part in parts:
        send(kafka, f"{prefix}.otlp", part)
        with AssembleProcess(kafka, tmp_path, prefix, {**quick, "memory_bytes": 1 << 20}) as stage:
            before = len(sent(kafka, prefix, timeout_s=1))
            eventually(lambda at=before: len(sent(kafka, prefix, timeout_s=1)) > at, 60, stage.logs)  # type: ignore[misc]  # a default binds it
            stage.kill()
    with AssembleProcess(kafka, tmp_path, prefix, quick) as stage:
        eventually(lambda: dict(sent(kafka, prefix, timeout_s=2)) == wanted(numbers), 60, stage.logs)
        assert stage.terminate() == 0, stage.logs()
    assert len(sent(kafka, prefix)) > len(numbers), "killed too late to prove anything"
    assert dict(sent(kafka, prefix)) == wanted(numbers)


def test_commits_wait_for_the_oldest_trace_and_then_go_to_the_end(kafka: Broker, tmp_path: Path) -> None:
    prefix = topics(kafka)
    parts = recorded_spans(pipeline(4), 4)
    chains = [one for one in parts if kind_of(decode_spans(batch([one])).spans[0]) in (None, "chain")]
    send(kafka, f"{prefix}.otlp", [(None, batch([one for one in parts if one not in chains]))])
    with AssembleProcess(kafka, tmp_path, prefix, {"late_s": 2.0}) as stage:
        eventually(lambda: stage.metric("ragtide_traces_open") == 1, 30, stage.logs)
        send(kafka, f"{prefix}.otlp", batches(range(5, 33), random.Random(3)))
        eventually(lambda: len(sent(kafka, prefix, 28)) == 28, 60, stage.logs)
        spans = read(kafka, f"{prefix}.spans", ENDLESS, 3)
        [first] = [one for one in spans if one.offset == 0 and one.key == (4).to_bytes(16).hex().encode()]
        assert committed(kafka, stage.group, first.topic, PARTITIONS)[first.partition] == 0
        send(kafka, f"{prefix}.otlp", [(None, batch(chains))])
        eventually(lambda: dict(sent(kafka, prefix, 29)) == wanted(range(4, 33)), 60, stage.logs)
        eventually(lambda: committed(kafka, stage.group, first.topic, PARTITIONS)[first.partition] > 0, 30, stage.logs)
        ends = read(kafka, f"{prefix}.spans", ENDLESS, 3)
        eventually(
            lambda: sum(committed(kafka, stage.group, first.topic, PARTITIONS).values()) == len(ends), 30, stage.logs
        )
        assert stage.terminate() == 0, stage.logs()


def test_texts_in_log_records_join_their_spans(kafka: Broker, tmp_path: Path) -> None:
    prefix, name = topics(kafka), "genai_langchain_events"
    spans, logs = ((RECORDED / f"{name}{suffix}").read_bytes() for suffix in (".json", ".logs.binpb"))
    send(kafka, f"{prefix}.otlp", [(None, spans)])
    send(kafka, f"{prefix}.logs", [(None, logs)])
    with AssembleProcess(kafka, tmp_path, prefix, {"log_topics": [f"{prefix}.logs"]}) as stage:
        eventually(lambda: len(sent(kafka, prefix, 1)) == 1, 60, stage.logs)
        assert stage.terminate() == 0, stage.logs()
    assert dict(sent(kafka, prefix, 1)) == expected(decode_spans(spans).spans, decode_logs(logs).events)
    settings = {"RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap, "RAGTIDE_KAFKA__SPANS_TOPIC": f"{prefix}.spans"}
    trace_id = decode_spans(spans).spans[0].trace_id
    said = CliRunner().invoke(main, ["explain-trace", trace_id, "--json"], env={"RAGTIDE_CONFIG": None, **settings})
    assert said.exit_code == 0, said.output
    [explained] = json.loads(said.stdout)["traces"]
    assert explained["trace"]["trace_id"] == trace_id
    assert explained["not_recorded"]
    said = CliRunner().invoke(main, ["explain-trace", "0" * 32], env={"RAGTIDE_CONFIG": None, **settings})
    assert said.exit_code == 2
    assert "has no spans of trace" in said.output


def test_log_records_that_the_topic_refuses_for_their_size_are_counted(kafka: Broker, tmp_path: Path) -> None:
    prefix, largest = topics(kafka), 4 << 20
    make_topics(kafka, {f"{prefix}.large": 1}, {"max.message.bytes": str(largest)})  # spans by trace: 1 MB
    logs = ExportLogsServiceRequest.FromString((RECORDED / "genai_langchain_events.logs.binpb").read_bytes())
    [log] = logs.resource_logs[0].scope_logs[0].log_records
    log.attributes.add(key="text").value.string_value = random.Random(5).randbytes(1 << 20).hex()
    send(kafka, f"{prefix}.large", [(None, logs.SerializeToString())])
    with AssembleProcess(kafka, tmp_path, prefix, {"log_topics": [f"{prefix}.large"]}) as stage:
        eventually(lambda: stage.metric("ragtide_spans_refused_total") == 1, 60, stage.logs)
        assert stage.terminate() == 0, stage.logs()
    assert read(kafka, f"{prefix}.spans", 1, 2) == []


def test_messages_that_cannot_be_read_are_dead_letters_and_stop_nothing(kafka: Broker, tmp_path: Path) -> None:
    prefix = topics(kafka)
    good = batch(recorded_spans(pipeline(4), 4))
    bad = [b"neither", good[: len(good) // 2], b'{"resourceSpans": [', b"\x1f\x8bno gzip", None]
    send(kafka, f"{prefix}.otlp", [*((b"k", value) for value in bad), (None, good)])
    send(kafka, f"{prefix}.spans", [(b"k", b"from elsewhere")])
    with AssembleProcess(kafka, tmp_path, prefix) as stage:
        eventually(lambda: len(sent(kafka, prefix, 1)) == 1, 60, stage.logs)
        eventually(lambda: stage.metric("ragtide_dead_letters_total") >= len(bad), 20, stage.logs)
        assert stage.terminate() == 0, stage.logs()
    letters = read(kafka, f"{prefix}.dead", len(bad) + 1, 10)
    assert {one.value for one in letters} >= {b"neither", b"from elsewhere", b"\x1f\x8bno gzip"}
    assert {dict(one.headers)["dlq.lane"] for one in letters} == {b"assemble"}
    assert dict(sent(kafka, prefix, 1)) == wanted(range(4, 5))


def test_partitions_move_to_a_second_worker_and_back(kafka: Broker, tmp_path: Path) -> None:
    prefix, rng = topics(kafka), random.Random(4)
    send(kafka, f"{prefix}.otlp", batches(range(1, 60), rng))
    with AssembleProcess(kafka, tmp_path, prefix) as first:
        eventually(lambda: first.metric("ragtide_traces_open") > 0, 30, first.logs)
        with AssembleProcess(kafka, tmp_path, prefix) as second:
            eventually(lambda: second.process is not None and second.process.says("consumes as group"), 30, second.logs)
            send(kafka, f"{prefix}.otlp", batches(range(60, 120), rng))
            eventually(lambda: dict(sent(kafka, prefix, 119)) == wanted(range(1, 120)), 90, second.logs)
            assert second.terminate() == 0, second.logs()
        send(kafka, f"{prefix}.otlp", batches(range(120, 140), rng))
        eventually(lambda: dict(sent(kafka, prefix, timeout_s=3)) == wanted(range(1, 140)), 90, first.logs)
        assert first.terminate() == 0, first.logs()


def test_a_traces_topic_that_no_lane_reads_is_refused(kafka: Broker, tmp_path: Path) -> None:
    prefix = topics(kafka)
    make_topics(kafka, {f"{prefix}.elsewhere": 1})
    with AssembleProcess(kafka, tmp_path, prefix, {"traces_topic": f"{prefix}.elsewhere"}) as stage:
        assert stage.process is not None
        assert stage.process.wait(30) == 2
        assert "no lane reads it as canonical traces" in stage.logs()


def test_topics_create_makes_the_topics_of_the_stage_with_the_brokers_time(kafka: Broker) -> None:
    prefix = f"t{random.Random().randrange(1 << 40):x}"
    names = {"SPANS_TOPIC": "spans", "TOPICS": "traces", "DEAD_LETTER_TOPIC": "dead", "JOBS_TOPIC": "jobs"}
    environment = {f"RAGTIDE_KAFKA__{name}": f"{prefix}.{value}" for name, value in names.items()}
    environment |= {"RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap, "RAGTIDE_OTEL__TOPICS": f"{prefix}.otlp"}

    def create() -> list[str]:
        done = CliRunner().invoke(main, ["topics", "create", "--spans"], env={"RAGTIDE_CONFIG": None, **environment})
        assert done.exit_code == 0, done.output
        return [line for line in done.output.splitlines() if "otlp" in line or "spans" in line]

    assert create() == [f"{prefix}.otlp: made", f"{prefix}.spans: made"]
    assert create() == [f"{prefix}.otlp: is there", f"{prefix}.spans: is there"]
    send(kafka, f"{prefix}.spans", [(b"k", b"v")])
    [record] = read(kafka, f"{prefix}.spans", 1)
    assert record.timestamp_type == 1, "the broker's clock, not the producer's"
