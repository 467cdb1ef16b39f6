"""Replays for the tests: files and settings of small runs, and what a run left behind."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragtide.evaluators.errors import Refused
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.protocol import Sink
from ragtide.sinks.rows import Block
from ragtide.stream.assembly import assemble
from ragtide.stream.pipeline import Interval
from ragtide.stream.replay.file import FileSource
from ragtide.stream.replay.loop import ReplayProgress, ReplaySource, replay
from ragtide.stream.replay.runs import RunRow, Runs
from ragtide.stream.settings.loader import Settings
from tests.stream.pipe.records import fields as some_fields

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


class Fastidious(ClickHouseSink):
    """Refuses the texts and scores of one trace, which do not report their partition."""

    def __init__(self, database: Database, refused: str) -> None:
        super().__init__(database)
        self._refused = refused

    def write(self, block: Block) -> None:
        ids = {row.trace_id for row in block.texts} | {row.trace_id for row in block.scores}
        if self._refused in ids:
            raise Refused("odd")
        super().write(block)


def go(
    database: Database,
    source: ReplaySource,
    run_id: str = "r",
    *,
    chosen: Settings | None = None,
    block_rows: int = 20,
    report: Callable[[ReplayProgress], None] = lambda progress: None,
    period: Interval | None = None,
    sink: Sink | None = None,
) -> RunRow:
    chosen = chosen or settings()
    made = assemble(chosen, None, run_id=run_id, timely=False, interval=period)
    runs = Runs(database)
    run = runs.claim(run_id, source.description, source.identity, made.plan, chosen)
    store = sink or ClickHouseSink(database)
    work = replay(source, made.pipeline, store, runs, run, block_rows=block_rows, report=report, rng=random.Random(1))
    return asyncio.run(work)


def rows(database: Database, table: str, run_id: str = "r") -> list[dict[str, Any]]:
    kept = "* EXCEPT (ingested_at)"
    order = {"dead_letters": "offset, topic, partition", "scores": "trace_id, evaluator"}.get(table, "trace_id")
    sql = f"SELECT {kept} FROM {table} FINAL WHERE run_id = {{run:String}} ORDER BY {order}"
    return database.rows(sql, {"run": run_id})


def everything(database: Database, run_id: str = "r") -> dict[str, list[dict[str, Any]]]:
    return {table: rows(database, table, run_id) for table in ("traces", "trace_texts", "scores", "dead_letters")}
