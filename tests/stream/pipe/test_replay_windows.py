"""A run's windows close when it is complete, count each trace once however it was read, and are nobody else's.

Its rows are those that workers store of the same records.
"""

import json
import uuid
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragtide.drift.jobs import JobContext, server_time
from ragtide.drift.leadership import Term
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.evaluators import registry
from ragtide.evaluators.spec import Lane
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import ProgressRow
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.records import Record, StoredRecord
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.replay.loop import ReplayProgress
from ragtide.stream.settings.loader import Settings
from tests.stream.core.traffic import read
from tests.stream.pipe.replaying import (
    BASE_MS,
    Stopped,
    everything,
    fields,
    file_source,
    go,
    lines,
    settings,
    traces,
)
from tests.stream.pipe.test_replay_topic import on_topic

pytestmark = pytest.mark.clickhouse


def jobs(database: Database, windows: WindowSettings | None = None) -> JobContext:
    term = Term(1, server_time(database))
    return JobContext(database, registry.load(), windows or WindowSettings(), RuleSettings(), JobSettings(), term)


def counted(database: Database) -> list[dict[str, object]]:
    return database.rows(
        "SELECT run_id, sum(seen) AS seen, sum(scored) AS scored, max(revision) AS revision FROM windows FINAL "
        "WHERE size_s = 60 AND metric = 'operations.latency_seconds' GROUP BY run_id"
    )


def stop(progress: ReplayProgress) -> None:
    if progress.traces >= 100:
        raise Stopped


def test_windows_close_once_the_run_is_complete_and_stay_the_same_when_it_is_repeated(
    database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(150), "poison"))
    watching = jobs(database)
    with pytest.raises(Stopped):
        go(database, file_source(file), report=stop)
    watching.run_cycle(server_time(database))
    assert counted(database) == []
    go(database, file_source(file))
    watching.run_cycle(server_time(database))
    closed = [{"run_id": "r", "seen": 150, "scored": 150, "revision": 1}]
    assert counted(database) == closed
    go(database, file_source(file))
    watching.run_cycle(server_time(database))
    assert counted(database) == closed
    assert database.rows("SELECT DISTINCT run_id FROM windows") == [{"run_id": "r"}]
    assert not database.rows("SELECT 1 FROM watermarks")
    assert not database.rows("SELECT 1 FROM problem_events")


LANES: tuple[Lane, ...] = ("fast", "model")
OF_BOTH = ("inputs", "operations", "pii_leakage", "rouge", "groundedness", "answer_relevancy_sentence")


def both_lanes() -> Settings:
    return settings(evaluators={"enabled": OF_BOTH, "encoder": {"backend": "onnx", "model": "all-MiniLM-L6-v2"}})


def live(database: Database, chosen: Settings, records: Sequence[Record]) -> None:
    """Stored as workers of both lanes store them."""
    for lane in LANES:
        block = assemble(chosen, lane).pipeline.process(records).block
        said_at = server_time(database) - timedelta(seconds=1)
        block.progress.append(ProgressRow(lane, "rag.traces", 0, "w", said_at, len(records), 0))
        ClickHouseSink(database).write(block)


def windows(database: Database) -> list[dict[str, Any]]:
    return database.rows("SELECT * EXCEPT (version) FROM windows FINAL WHERE run_id = 'live' ORDER BY ALL")


@pytest.mark.broker
@pytest.mark.onnx
def test_a_replay_leaves_the_rows_of_the_lanes_and_touches_none_of_theirs(
    database: Database, broker: EmbeddedBroker
) -> None:
    topic = f"t-{uuid.uuid4().hex}"
    values = [
        fields(trace_id=f"t-{n}", time=BASE_MS + n * 3000, expected=[f"It returns {n} strings."]) for n in range(30)
    ]  # of two minutes; all embed the same texts, since a vector's last bits depend on what is encoded beside it
    sent = [(value["time"], json.dumps(value).encode()) for value in values]
    source = on_topic(broker.bootstrap, topic, [*sent, (BASE_MS, b"poison")])
    chosen, watching = both_lanes(), jobs(database)
    live(database, chosen, read(broker, topic, 31))
    watching.run_cycle(server_time(database))
    stored, closed = everything(database, "live"), windows(database)
    assert [len(found) for found in stored.values()] == [30, 30, 30 * len(OF_BOTH), 1]
    assert {row["status"] for row in stored["scores"]} == {"scored"}
    assert len({row["start"] for row in closed if row["size_s"] == 60}) == 2

    go(database, source(), chosen=chosen)
    watching.run_cycle(server_time(database))
    of_run = everything(database)
    assert {table: [{**row, "run_id": "live"} for row in found] for table, found in of_run.items()} == stored
    assert (everything(database, "live"), windows(database)) == (stored, closed)

    go(database, source(), "live", chosen=chosen)  # as a backfill of what was there already
    watching.run_cycle(server_time(database))
    assert (everything(database, "live"), windows(database)) == (stored, closed)


def test_a_backfill_revises_closed_windows_and_moves_no_watermark(database: Database, tmp_path: Path) -> None:
    one_minute = [fields(trace_id=f"t-{n}", time=BASE_MS + n * 1000) for n in range(50)]
    records = [
        StoredRecord("rag.traces", 0, n, BASE_MS, None, json.dumps(one).encode()) for n, one in enumerate(one_minute)
    ]
    chosen, watching = settings(), jobs(database, WindowSettings(allowed_lateness_s=86400))
    live(database, chosen, records[:30])
    watching.run_cycle(server_time(database))
    assert counted(database) == [{"run_id": "live", "seen": 30, "scored": 30, "revision": 1}]
    watermarks = database.rows("SELECT * FROM watermarks FINAL ORDER BY ALL")
    assert watermarks

    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*one_minute[20:]))
    go(database, file_source(file), "live", chosen=chosen)
    watching.run_cycle(server_time(database))
    assert counted(database) == [{"run_id": "live", "seen": 50, "scored": 50, "revision": 2}]  # ten came twice
    assert {row["state"] for row in windows(database) if row["metric"] == "operations.latency_seconds"} == {"revised"}
    assert database.rows("SELECT * FROM watermarks FINAL ORDER BY ALL") == watermarks
    assert not database.rows("SELECT 1 FROM problem_events")
