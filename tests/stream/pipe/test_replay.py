"""A replay leaves the same rows however often it is run, stopped or killed, and touches nothing of live's."""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evaluators.errors import ConfigError, Transient
from sinks.clickhouse.database import Database
from sinks.clickhouse.sink import ClickHouseSink
from sinks.rows import Block
from stream.assembly import assemble
from stream.pipeline import Period, Pipeline
from stream.replay import Progress, Source, replay
from stream.replay_file import FileSource
from stream.runs import RunRow, Runs
from stream.settings import Settings
from tests.infra.kafka_node import KafkaNode
from tests.stream.pipe.records import fields as some_fields

pytestmark = pytest.mark.clickhouse

ROOT = Path(__file__).parents[3]
DAY_MS = 86_400_000
# Live rows and records on a topic are kept by their age, so these are of an hour that has just passed.
BASE_MS = int(time.time()) // 3600 * 3_600_000 - 3 * 3_600_000


def fields(**changes: Any) -> dict[str, Any]:
    return some_fields(**{"time": BASE_MS, **changes})


def settings(**sections: dict[str, Any]) -> Settings:
    return Settings.model_validate(
        {"evaluators": {"enabled": ["inputs", "operations"]}, "worker": {"batch_records": 10}, **sections}
    )


def lines(*values: Any) -> str:
    return "".join(f"{value if isinstance(value, str) else json.dumps(value)}\n" for value in values)


def traces(number: int) -> list[dict[str, Any]]:
    return [fields(trace_id=f"t-{n}", time=BASE_MS + n * 1000) for n in range(number)]


def file_source(path: Path, batch: int = 10, **limits: int) -> FileSource:
    return FileSource(path, batch_records=batch, batch_bytes=1 << 20, max_line_bytes=limits.get("max_line", 8 << 20))


class Stopped(Exception):
    """In place of a kill."""


def go(
    database: Database,
    source: Source,
    run_id: str = "r",
    *,
    chosen: Settings | None = None,
    block_rows: int = 20,
    tell: Callable[[Progress], None] = lambda progress: None,
    period: Period | None = None,
    sink: ClickHouseSink | None = None,
) -> RunRow:
    chosen = chosen or settings()
    made = assemble(chosen, None, run_id=run_id, timely=False, period=period)
    runs = Runs(database)
    run = runs.claim(run_id, source.description, source.identity, made.plan, chosen)
    store = sink or ClickHouseSink(database)
    work = replay(source, made.pipeline, store, runs, run, block_rows=block_rows, tell=tell, rng=random.Random(1))
    return asyncio.run(work)


def rows(database: Database, table: str, run_id: str = "r") -> list[dict[str, Any]]:
    kept = "* EXCEPT (ingested_at)"
    order = {"dead_letters": "offset", "scores": "trace_id, evaluator"}.get(table, "trace_id")
    sql = f"SELECT {kept} FROM {table} FINAL WHERE run_id = {{run:String}} ORDER BY {order}"
    return database.rows(sql, {"run": run_id})


def everything(database: Database, run_id: str = "r") -> dict[str, list[dict[str, Any]]]:
    return {table: rows(database, table, run_id) for table in ("traces", "trace_texts", "scores", "dead_letters")}


def test_a_file_becomes_a_run(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(25), "", "not json", {"app": "x"}, fields(trace_id="old", time=0)))
    told: list[Progress] = []
    done = go(database, file_source(file), tell=told.append)
    assert (done.state, done.traces, done.dead_letters) == ("completed", 26, 2)
    assert [row["trace_id"] for row in rows(database, "traces")][:3] == ["old", "t-0", "t-1"]
    assert len(rows(database, "traces")) == len(rows(database, "trace_texts")) == 26
    assert len(rows(database, "scores")) == 52
    dead = [(row["topic"], row["offset"], row["reason"]) for row in rows(database, "dead_letters")]
    assert dead == [("file:traces.jsonl", 27, "not_json"), ("file:traces.jsonl", 28, "missing_trace_id")]
    assert told[-1] == Progress(file.stat().st_size, file.stat().st_size, 26, 2)
    marks = database.rows("SELECT DISTINCT run_id, lane, start FROM dirty_windows ORDER BY start")
    assert {(mark["run_id"], mark["lane"]) for mark in marks} == {("r", "fast")}
    assert [mark["start"] for mark in marks] == [datetime.fromtimestamp(s, UTC) for s in (0, BASE_MS // 1000)]
    assert not database.rows("SELECT 1 FROM progress")
    stored = Runs(database).find("r")
    assert stored is not None
    assert stored._replace(started_at=done.started_at) == done


def test_run_twice_it_leaves_the_same_rows(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(25), "poison"))
    first = go(database, file_source(file))
    before = everything(database)
    second = go(database, file_source(file))
    assert everything(database) == before
    assert (second.traces, second.dead_letters, second.state) == (first.traces, first.dead_letters, "completed")


def test_stopped_anywhere_it_goes_on_where_it_was(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(100), "poison"))
    go(database, file_source(file), "whole")
    whole = everything(database, "whole")

    def stop_at(number: int) -> Callable[[Progress], None]:
        def tell(progress: Progress) -> None:
            if progress.traces >= number:
                raise Stopped

        return tell

    read: list[int] = []
    for number in (30, 30, 70):
        with pytest.raises(Stopped):
            go(database, file_source(file), tell=stop_at(number))
        left = Runs(database).find("r")
        assert left is not None
        read.append(left.where["file"]["line"])
    assert read == sorted(read)
    assert 30 <= read[-1] < 100
    done = go(database, file_source(file))
    assert (done.traces, done.dead_letters) == (100, 1)
    assert [{**row, "run_id": "whole"} for row in rows(database, "traces")] == whole["traces"]
    assert [{**row, "run_id": "whole"} for row in rows(database, "scores")] == whole["scores"]
    assert [{**row, "run_id": "whole"} for row in rows(database, "dead_letters")] == whole["dead_letters"]


def test_a_name_with_other_settings_is_refused(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(3)))
    go(database, file_source(file))
    with pytest.raises(ConfigError, match=r"with evaluators inputs, operations, not inputs.*another --run"):
        go(database, file_source(file), chosen=settings(evaluators={"enabled": ["inputs"]}))
    with pytest.raises(ConfigError, match="other settings of ingest, sampling or privacy"):
        go(database, file_source(file), chosen=settings(sampling={"lanes": {"fast": 0.5}}))
    file.write_text(lines(*traces(4)))
    with pytest.raises(ConfigError, match="other content of the file"):
        go(database, file_source(file))
    other = tmp_path / "other.jsonl"
    other.write_text(lines(*traces(3)))
    with pytest.raises(ConfigError, match=r"from file traces\.jsonl, not file other\.jsonl"):
        go(database, file_source(other))
    assert len(rows(database, "traces")) == 3


def test_backfills_of_live_are_told_apart_and_mark_live_windows(database: Database, tmp_path: Path) -> None:
    for name, number in (("a", 3), ("b", 4)):
        file = tmp_path / f"{name}.jsonl"
        file.write_text(lines(*traces(number)))
        assert go(database, file_source(file), "live").traces == number
    assert len(rows(database, "traces", "live")) == 4
    assert {row["run_id"] for row in database.rows("SELECT run_id FROM dirty_windows")} == {"live"}
    assert not database.rows("SELECT 1 FROM progress")
    names = [row["run_id"] for row in database.rows("SELECT run_id FROM runs FINAL")]
    assert len(names) == 2
    assert all(name.startswith("live:") for name in names)


def test_a_file_never_replaces_what_came_live(database: Database, tmp_path: Path) -> None:
    from stream.records import StoredRecord

    live: Pipeline = assemble(settings(), "fast").pipeline
    value = json.dumps(fields(trace_id="t-0", time=BASE_MS, answer="live")).encode()
    ClickHouseSink(database).write(live.process([StoredRecord("rag.traces", 0, 0, BASE_MS, None, value)]).block)
    file = tmp_path / "old.jsonl"
    file.write_text(lines(fields(trace_id="t-0", time=BASE_MS, answer="from the file")))
    go(database, file_source(file), "live")
    assert [row["answer"] for row in rows(database, "trace_texts", "live")] == ["live"]


def test_a_thousand_days_in_one_file(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "days.jsonl"
    file.write_text(lines(*(fields(trace_id=f"t-{n}", time=BASE_MS - n * DAY_MS) for n in range(1000))))
    done = go(database, file_source(file, 500), block_rows=10_000, chosen=settings(evaluators={"enabled": ["inputs"]}))
    assert done.traces == 1000
    assert database.rows("SELECT uniqExact(toDate(time)) AS days FROM traces FINAL") == [{"days": 1000}]


def test_lines_too_long_are_dead_letters_and_the_rest_is_read(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(fields(answer="x" * 5000), *traces(2)))
    small = settings(ingest={"max_bytes": 2048})
    done = go(database, file_source(file, max_line=2048), chosen=small)
    assert (done.traces, done.dead_letters) == (2, 1)
    assert [row["reason"] for row in rows(database, "dead_letters")] == ["too_big"]


def test_a_sink_that_is_away_is_waited_for(database: Database, tmp_path: Path) -> None:
    class Away(ClickHouseSink):
        attempts = 0

        def write(self, block: Block) -> None:
            self.attempts += 1
            if self.attempts < 3:
                raise Transient("away")
            super().write(block)

    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(5)))
    assert go(database, file_source(file), sink=Away(database)).traces == 5
    assert len(rows(database, "traces")) == 5


@pytest.fixture
def command(database: Database, tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAGWATCH_")}
    environ |= {
        "PYTHONPATH": str(ROOT),
        "RAGWATCH_CLICKHOUSE__URL": database.settings.url,
        "RAGWATCH_CLICKHOUSE__USER": database.settings.user,
        "RAGWATCH_CLICKHOUSE__PASSWORD": database.settings.password.get_secret_value(),
        "RAGWATCH_CLICKHOUSE__DATABASE": database.settings.database,
        "RAGWATCH_WORKER__BLOCK_ROWS": "100",
        "RAGWATCH_WORKER__BATCH_RECORDS": "50",
    }

    def start(*args: str, **variables: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "stream.cli", *args],
            cwd=tmp_path,
            env={**environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.chaos
def test_killed_in_the_middle_the_same_command_finishes(
    database: Database, command: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(3000)))
    args = ("replay", "--run", "k", "--file", str(file), "--evaluators", "inputs,operations")
    process = command(*args)
    deadline = time.monotonic() + 60
    while (left := Runs(database).find("k")) is None or left.traces < 500:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait(10)
    left = Runs(database).find("k")
    assert left is not None
    assert left.state == "started"
    again = command(*args)
    said, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert "3,000 traces, 0 dead letters" in said
    counts = database.rows("SELECT count() AS n, uniqExact(trace_id) AS ids FROM traces FINAL WHERE run_id = 'k'")
    assert counts == [{"n": 3000, "ids": 3000}]
    assert database.rows("SELECT count() AS n FROM scores FINAL WHERE run_id = 'k'") == [{"n": 6000}]


def produce(bootstrap: str, topic: str, values: Sequence[tuple[int, bytes]], partitions: int = 2) -> None:
    from aiokafka import AIOKafkaProducer

    from stream.local.topics import create_topics

    async def send() -> None:
        await create_topics(bootstrap, {topic: partitions})
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        try:
            for n, (timestamp_ms, value) in enumerate(values):
                await producer.send(topic, value, partition=n % partitions, timestamp_ms=timestamp_ms)
            await producer.flush()
        finally:
            await producer.stop()

    asyncio.run(send())


def on_topic(bootstrap: str, topic: str, values: Sequence[tuple[int, bytes]]) -> Callable[..., Source]:
    from stream.replay_topic import TopicSource

    produce(bootstrap, topic, values)
    kafka = settings(kafka={"bootstrap_servers": bootstrap}).kafka

    def source(period: Period | None = None, late_s: float = 3600.0) -> Source:
        return TopicSource(kafka, [topic], period, ahead_s=600.0, late_s=late_s, batch_records=7)

    return source


@pytest.fixture(
    params=[pytest.param("broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def bootstrap(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param).bootstrap
    return found


def test_a_topic_becomes_a_run(database: Database, bootstrap: str) -> None:
    values = [(BASE_MS + n * 1000, json.dumps(trace).encode()) for n, trace in enumerate(traces(50))]
    source = on_topic(bootstrap, f"t-{uuid.uuid4().hex}", [*values, (BASE_MS, b"poison")])
    done = go(database, source())
    assert (done.traces, done.dead_letters) == (50, 1)
    before = everything(database)
    assert len(before["traces"]) == 50
    assert {row["partition"] for row in before["traces"]} == {0, 1}
    assert go(database, source()).traces == 50
    assert everything(database) == before


def test_a_period_of_a_topic_is_by_event_time(database: Database, bootstrap: str) -> None:
    sent = [
        (BASE_MS - 3_600_000, "early", BASE_MS - 3_600_000),
        (BASE_MS - 500_000, "clock ahead", BASE_MS + 1),  # event time 8 min ahead of the broker's
        (BASE_MS, "first", BASE_MS),
        (BASE_MS + 50_000, "just before", BASE_MS - 1),
        (BASE_MS + 60_000, "at the end", BASE_MS + 60_000),
        (BASE_MS + 3_000_000, "late", BASE_MS + 59_999),  # arrived 49 min after its event time
    ]
    values = [(broker, json.dumps(fields(trace_id=name, time=at)).encode()) for broker, name, at in sent]
    source = on_topic(bootstrap, f"t-{uuid.uuid4().hex}", values)
    period = Period(BASE_MS / 1000, BASE_MS / 1000 + 60)
    done = go(database, source(period), period=period)
    assert [row["trace_id"] for row in rows(database, "traces")] == ["clock ahead", "first", "late"]
    assert done.traces == 3


@pytest.mark.kafka
def test_what_came_later_than_asked_for_is_not_waited_for(database: Database, kafka: KafkaNode) -> None:
    late_s = (0, 3600, 3601)
    values = [(BASE_MS + 1000 * s, json.dumps(fields(trace_id=f"{s} s late", time=BASE_MS)).encode()) for s in late_s]
    source = on_topic(kafka.bootstrap, f"t-{uuid.uuid4().hex}", values)
    period = Period(BASE_MS / 1000, BASE_MS / 1000 + 0.5)
    assert go(database, source(period, late_s=3600.0), period=period).traces == 2


def test_the_end_of_the_range_is_settled_at_the_first_start(database: Database, bootstrap: str) -> None:
    topic = f"t-{uuid.uuid4().hex}"
    values = [(BASE_MS, json.dumps(trace).encode()) for trace in traces(30)]
    source = on_topic(bootstrap, topic, values)

    def stop(progress: Progress) -> None:
        if progress.traces >= 20:
            raise Stopped

    with pytest.raises(Stopped):
        go(database, source(), tell=stop, block_rows=10)
    produce(bootstrap, topic, [(BASE_MS, json.dumps(fields(trace_id="later")).encode())])
    done = go(database, source())
    assert done.traces == 30
    assert "later" not in {row["trace_id"] for row in rows(database, "traces")}


def test_a_topic_that_is_not_there_is_told(database: Database, bootstrap: str) -> None:
    from stream.replay_topic import TopicSource

    kafka = settings(kafka={"bootstrap_servers": bootstrap}).kafka
    source = TopicSource(kafka, ["nowhere"], None, ahead_s=0, late_s=0, batch_records=7)
    with pytest.raises(ConfigError, match="has no topic nowhere"):
        go(database, source)


def test_no_broker_is_told(database: Database) -> None:
    from stream.replay_topic import TopicSource

    kafka = settings(kafka={"bootstrap_servers": "127.0.0.1:9", "request_timeout_s": 1}).kafka
    source = TopicSource(kafka, ["t"], None, ahead_s=0, late_s=0, batch_records=7)
    with pytest.raises(Transient, match=r"127\.0\.0\.1:9"):
        go(database, source)
