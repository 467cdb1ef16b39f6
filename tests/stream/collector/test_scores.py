"""From the SDK through a real Collector, Apache Kafka, stage `assemble` and both lanes to scores."""

import random
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.ingest.otel import Encoding, decode_logs, decode_spans
from tests.infra.collector import Collector
from tests.infra.go_programs import GO
from tests.stream.collector.exporting import export_logs, export_spans, recorded_spans
from tests.stream.collector.page import settings
from tests.stream.collector.site import EVALUATORS, Site, stored
from tests.stream.core.traffic import Broker, eventually
from tests.stream.otel.scene import ANSWER, HOURS, NAMES, PRICES, QUESTION, RECORDED

pytestmark = [
    pytest.mark.collector,
    pytest.mark.kafka,
    pytest.mark.clickhouse,
    pytest.mark.onnx,
    pytest.mark.skipif(GO is None, reason="Go is missing"),
    pytest.mark.timeout(1200),  # the first of all runs builds the Collector
]

# By topic: encoding, and partition_traces_by_id.
WAYS: Mapping[str, tuple[Encoding, bool]] = {
    "proto": ("otlp_proto", False),
    "proto_by_trace": ("otlp_proto", True),
    "json": ("otlp_json", False),
    "json_by_trace": ("otlp_json", True),
}
# Of these neither question nor answer is recorded: a lane refuses them.
WITHOUT_TEXT = ("genai_langchain_no_content", "openinference_langchain_hidden")
WITH_TEXT = [name for name in NAMES if name not in WITHOUT_TEXT]
# Of these no text of a chunk is recorded.
WITHOUT_CHUNKS = ("genai_langchain", "genai_langchain_events")
# What differs between two traces with the same spans.
OWN = ("trace_id", "version", "topic", "partition", "offset", "ingested_at")
ECHO = " ".join(["text"] * 8)  # what LlamaIndex's own fake model says

Rows = Mapping[tuple[Any, ...], Mapping[str, Any]]


def trace_id(way: str, name: str) -> int:
    return random.Random(f"{way} {name}").getrandbits(128)


def send(collector: Collector, way: str, ended_ns: int) -> int:
    """Export every recorded pipeline under trace ids of this way; how many spans and log records."""
    spans = [one for name in NAMES for one in recorded_spans(RECORDED / f"{name}.binpb", trace_id(way, name), ended_ns)]
    export_spans(collector.url, spans)
    logs = {name: RECORDED / f"{name}.logs.binpb" for name in NAMES}
    files = {name: file for name, file in logs.items() if file.exists()}
    for name, file in files.items():
        export_logs(collector.url, file, trace_id(way, name))
    eventually(lambda: collector.metric("exporter_sent_spans") == len(spans), 30, collector.log)
    eventually(lambda: collector.metric("exporter_sent_log_records") == len(files), 30, collector.log)
    return len(spans)


def rows_of(database: Database, table: str, way: str) -> Rows:
    """Current rows of this way, by the name of the pipeline and, if there is one, the evaluator."""
    names = {f"{trace_id(way, name):032x}": name for name in NAMES}
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in database.rows(f"SELECT * FROM {table} FINAL"):
        if name := names.get(row["trace_id"]):
            kept = {column: value for column, value in row.items() if column not in OWN}
            if "rest" in kept:  # JSON of the trace, with its id
                kept["rest"] = kept["rest"].replace(row["trace_id"], name)
            found[name, row.get("evaluator")] = kept
    return found


def differences(one: Rows, other: Rows) -> list[tuple[object, ...]]:
    """Row, column and both values, wherever these differ; a row that one lacks has no values there."""
    return [
        (key, column, a, b)
        for key in one.keys() | other.keys()
        for column in one.get(key, other.get(key, {}))
        if (a := one.get(key, {}).get(column)) != (b := other.get(key, {}).get(column))
    ]


def count(database: Database, what: str) -> int:
    return int(database.rows(f"SELECT {what} AS n")[0]["n"])


@pytest.fixture
def site(kafka: Broker, database: Database, tmp_path: Path) -> Iterator[Site]:
    with Site(kafka, tmp_path, tuple(WAYS), database) as made:
        yield made


def test_the_same_traces_give_the_same_rows_in_both_encodings(site: Site, database: Database, tmp_path: Path) -> None:
    processes = [site.start(part) for part in ("assemble", "fast", "model")]
    ended_ns, sent = time.time_ns(), {}
    for way, (encoding, by_trace) in WAYS.items():
        topics = site.spans_topic(way), site.logs_topic(way)
        with Collector(tmp_path / way, settings(site.broker, *topics, encoding, by_trace=by_trace)) as collector:
            sent[way] = send(collector, way, ended_ns)
            assert collector.stop() == 0, collector.log()

    wanted = len(WAYS) * len(WITH_TEXT) * len(EVALUATORS)
    eventually(lambda: count(database, "(SELECT count() FROM scores FINAL)") == wanted, 120, site.logs)
    for process in processes:
        assert process.stop() == 0, site.logs()

    for way, (encoding, by_trace) in WAYS.items():
        _check_messages(site, way, sent[way], encoding, by_trace=by_trace)
    reasons = {row["reason"] for row in database.rows("SELECT reason FROM dead_letters")}
    assert reasons == {"missing_question_and_answer"}
    letters = "(SELECT uniqExact(topic, partition, offset) FROM dead_letters)"
    assert count(database, letters) == len(WAYS) * len(WITHOUT_TEXT)
    for table in ("scores", "traces", "trace_texts"):
        first, *others = (rows_of(database, table, way) for way in WAYS)
        assert {name for name, _ in first} == set(WITH_TEXT), table
        for other in others:
            assert differences(first, other) == [], table
    _check_rows(database)


def _check_messages(site: Site, way: str, spans: int, encoding: Encoding, *, by_trace: bool) -> None:
    """The topics hold what was exported, in this encoding and with these keys."""
    messages = stored(site.broker, site.spans_topic(way))
    batches = [decode_spans(one.value, encoding) for one in messages]
    assert sum(len(batch.spans) for batch in batches) == spans
    for message, batch in zip(messages, batches, strict=True):
        ids = {span.trace_id for span in batch.spans}
        assert message.key == (ids.pop().encode() if by_trace else None)
        assert not (by_trace and ids)
    logs = stored(site.broker, site.logs_topic(way))
    assert sum(len(decode_logs(one.value, encoding).events) for one in logs) == 1


def _check_rows(database: Database) -> None:
    """What the rows say, of one way: the others are the same."""
    texts = {name: row for (name, _), row in rows_of(database, "trace_texts", "proto").items()}
    scores = rows_of(database, "scores", "proto")
    for name in WITH_TEXT:
        assert texts[name]["question"] == QUESTION
        assert texts[name]["answer"] == (ECHO if name.endswith("llama_index") else ANSWER)
        has_chunks = name not in WITHOUT_CHUNKS
        assert {HOURS, PRICES} == {*texts[name]["chunks"]} or not has_chunks
        assert scores[name, "answer_relevancy_sentence"]["status"] == "scored"
        assert scores[name, "groundedness"]["status"] == ("scored" if has_chunks else "not_applicable")
