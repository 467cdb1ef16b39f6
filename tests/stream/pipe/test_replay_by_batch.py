"""`ragtide replay --batch`: a topic judged in few batches, with the rows and the windows of direct calls."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.drift.jobs import server_time
from ragtide.evaluators import registry
from ragtide.evaluators.spec import Lane
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import ProgressRow
from ragtide.stream.assembly import assemble, restrict
from ragtide.stream.cli import main
from ragtide.stream.cli.replay import fill
from ragtide.stream.ingest.records import Record
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.replay.batch_joiner import BatchJoiner
from ragtide.stream.replay.file import FileSource
from ragtide.stream.replay.loop import RecordBatch
from ragtide.stream.replay.runs import Position
from ragtide.stream.settings.loader import load
from tests.infra.fresh_database import reached
from tests.stream.core.rows import record
from tests.stream.core.traffic import read
from tests.stream.judge.batch_server import NEVER, BatchServer, batch_server
from tests.stream.judge.test_batch_end_to_end import environment
from tests.stream.judge.test_end_to_end import RECORDS, simple_judge
from tests.stream.pipe.replaying import BASE_MS, rows, settings
from tests.stream.pipe.test_replay_topic import produce
from tests.stream.pipe.test_replay_windows import jobs

pytestmark = [pytest.mark.clickhouse, pytest.mark.broker]


def values() -> list[tuple[int, bytes]]:
    """Traces of two minutes."""
    times = [BASE_MS + 4000 * number for number in range(len(RECORDS))]
    return [
        (at_ms, json.dumps(record | {"time": at_ms}).encode()) for at_ms, record in zip(times, RECORDS, strict=True)
    ]


def time_text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()


def replay(database: Database, server: BatchServer, folder: Path, bootstrap: str, topic: str, *more: str) -> Result:
    env = {**environment(server, folder), **reached(database), "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": bootstrap}
    env["RAGTIDE_EVALUATORS__DISABLED"] = "faithfulness"  # as workers have it
    called = ["replay", "--topic", topic, "--from", time_text(BASE_MS), "--to", time_text(BASE_MS + 600_000), *more]
    ran = CliRunner().invoke(main, called, env=env)
    assert ran.exit_code == 0, (ran.output, ran.exception)
    return ran


def windows(database: Database, run_id: str, metric: str) -> list[dict[str, Any]]:
    return database.rows(
        "SELECT start, seen, scored, sum, state FROM windows FINAL "
        "WHERE run_id = {run:String} AND metric = {metric:String} AND size_s = 60 AND segment = '' ORDER BY start",
        {"run": run_id, "metric": metric},
    )


def stored_by_workers(database: Database, broker: EmbeddedBroker, topic: str, lanes: Sequence[Lane]) -> None:
    """The rows of lanes whose settings have the judge off."""
    for lane in lanes:
        made = assemble(settings(evaluators={"enabled": ["operations"]}), lane)
        block = made.pipeline.process(read(broker, topic, len(RECORDS))).block
        said_at = server_time(database) - timedelta(seconds=1)
        block.progress.append(ProgressRow(lane, topic, 0, "w", said_at, len(RECORDS), 0))
        ClickHouseSink(database).write(block)


def of_judge(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"run_id": ""} for row in found if row["evaluator"] == "faithfulness"]


@pytest.mark.parametrize("lanes", [("fast",), ("fast", "judge")], ids=" ".join)
def test_a_topic_is_judged_by_batches_and_its_windows_are_those_of_direct_calls(
    database: Database, broker: EmbeddedBroker, tmp_path: Path, lanes: Sequence[Lane]
) -> None:
    """Windows of `live` close by the watermark of a worker of lane `judge`, whichever judges it runs.

    It has passed them long ago, so that they raise no alert: they are frozen.
    """
    topic = f"t-{uuid.uuid4().hex}"
    produce(broker.bootstrap, topic, values(), 3)
    stored_by_workers(database, broker, topic, lanes)
    watching = jobs(database)
    watching.run_cycle(server_time(database))
    live = windows(database, "live", "operations.latency_seconds")
    chosen = ("--evaluators", "faithfulness", "--set", "evaluators.disabled=")
    with batch_server(simple_judge) as server:
        replay(database, server, tmp_path, broker.bootstrap, topic, "--run", "direct", *chosen)
        assert not server.batches
        (tmp_path / "replies.db").unlink()
        told = replay(database, server, tmp_path, broker.bootstrap, topic, "--run", "batched", *chosen, "--batch")
        assert server.calls == [30, 30], "two steps about 30 traces of three partitions"
        assert "run batched: 30 traces" in told.stdout
        assert "judge local: 60 calls" in told.stderr
        replay(database, server, tmp_path, broker.bootstrap, topic, "--run", "live", *chosen, "--batch")
        assert server.calls == [30, 30], "the cache has all replies"
    watching.run_cycle(server_time(database))
    assert len(of_judge(rows(database, "scores", "direct"))) == 30
    assert of_judge(rows(database, "scores", "batched")) == of_judge(rows(database, "scores", "direct"))
    assert of_judge(rows(database, "scores", "live")) == of_judge(rows(database, "scores", "direct"))
    for run_id, state in (("batched", "closed"), ("live", "frozen" if "judge" in lanes else None)):
        judged = windows(database, run_id, "faithfulness.faithfulness")
        expected = [{"seen": 15, "scored": 15, "sum": 7.5, "state": state}] * 2 if state else []
        assert [{name: row[name] for name in ("seen", "scored", "sum", "state")} for row in judged] == expected
    assert windows(database, "live", "operations.latency_seconds") == live
    assert not database.rows("SELECT 1 FROM problem_events")


def test_batches_of_a_source_are_joined_up_to_a_number_and_only_if_versions_tell_records_apart() -> None:
    class Source:
        description = identity = "three batches"

        def rewind(self, position: Position) -> Position:
            return position

        async def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
            for at, (partition, first) in enumerate([(0, 0), (1, 0), (0, 4), (255, 0), (2, 0)], start=1):
                records = [record(first + number, partition=partition) for number in range(4)]
                yield RecordBatch(records, {"next": {"a": at}}, at, 5)

    async def read() -> list[tuple[list[int], int]]:
        source = BatchJoiner(Source(), most_records=12, most_bytes=1 << 20)
        async with aclosing(source.read({})) as batches:
            return [([one.partition for one in batch.records], batch.done) async for batch in batches]

    found = asyncio.run(read())
    assert [(sorted(set(partitions)), len(partitions), done) for partitions, done in found] == [
        ([0, 1], 12, 3),
        ([2, 255], 8, 5),
    ]


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_replay_that_is_stopped_while_a_batch_is_in_flight_goes_on(
    database: Database, tmp_path: Path, stop: signal.Signals
) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in RECORDS))
    command = [sys.executable, "-m", "ragtide.stream", "replay", "--run", "r", "--file", str(file)]
    command += ["--evaluators", "faithfulness", "--batch"]

    def start(server: BatchServer) -> "subprocess.Popen[str]":
        env = {**os.environ, **environment(server, tmp_path), **reached(database)}
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    with batch_server(simple_judge, looks=NEVER) as server:
        process = start(server)
        try:
            end = time.monotonic() + 60
            while server.requests["look"] < 2:
                assert time.monotonic() < end, "no batch was sent"
                assert process.poll() is None, process.communicate()
                time.sleep(0.02)
            process.send_signal(stop)
            _, told = process.communicate(timeout=30)
        finally:
            process.kill()
        assert process.returncode != 0
        assert stop == signal.SIGKILL or "the same command continues it" in told
        assert stop == signal.SIGKILL or "1 batch with 30 calls; the same command finds them again" in told
        server.looks = 0
        for batch in server.batches.values():
            batch.looks = 0
        again = start(server)
        said, told = again.communicate(timeout=60)
        assert again.returncode == 0, told
        assert "run r: 30 traces" in said
        assert server.calls == [30, 30], "two steps"
        assert not server.files
    assert {row["status"] for row in of_judge(rows(database, "scores", "r"))} == {"scored"}


def test_a_replay_whose_run_is_not_completed_pays_for_no_reply_twice(database: Database, tmp_path: Path) -> None:
    """It is stopped once all replies came and rows are stored. Replies that cannot be read are in no cache."""
    file = tmp_path / "traces.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in RECORDS))

    def stop(records: Sequence[Record]) -> None:
        raise KeyboardInterrupt

    with batch_server(lambda sent: "I am not sure.") as server:
        loaded = load(None, {**environment(server, tmp_path), **reached(database)}).settings
        chosen = restrict(loaded, ["faithfulness"], (), registry.load(loaded.evaluators))
        sizes = {"batch_records": 100, "batch_bytes": 1 << 20, "max_line_bytes": 1 << 20}
        with pytest.raises(KeyboardInterrupt):
            fill(chosen, "r", FileSource(file, **sizes), on_stored=stop, by_batch=True)
        assert server.calls == [30, 30], "the calls and their repairs"
        fill(chosen, "r", FileSource(file, **sizes), by_batch=True)
        assert server.calls == [30, 30]
        assert not server.files
