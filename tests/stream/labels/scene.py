"""Traces and labels in one database, taken in by the real pipeline; the topics are lists of the test's own."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ragtide.drift.jobs import server_time
from ragtide.drift.windows.moved_traces import tombstone_moved_traces
from ragtide.drift.windows.replaced_rows import delete_replaced
from ragtide.drift.windows.scope import WindowKey
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.records import DeadLetter, Record, StoredRecord
from ragtide.stream.labels.job import LabelJob
from ragtide.stream.labels.joining import Message
from ragtide.stream.labels.reader import LabelReader
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings
from ragtide.stream.telemetry.registry import Telemetry
from tests.stream.pipe.records import fields

EVALUATORS = ["inputs", "exact_match", "classification", "text_matching"]  # none that needs a model
TABLES = {
    "traces": "trace_id, version, topic, partition, offset, user_id",
    "trace_texts": "trace_id, version, question, answer, chunk_ids, chunks, expected, attributes, rest",
    "scores": "evaluator, trace_id, version, status, reason, metrics, parts, fingerprint",
    "labels": "trace_id, version, expected, relevance, classes",
}


class Letters:
    """Dead letters that were sent."""

    def __init__(self) -> None:
        self.sent: list[DeadLetter] = []

    async def send(self, letters: Sequence[DeadLetter]) -> None:
        self.sent += letters


@dataclass
class Scene:
    """`now_ms` is the brokers' clock; an offset is never given twice."""

    database: Database
    sections: dict[str, Any] = field(default_factory=dict)
    now_ms: int = field(default_factory=lambda: int(time.time()) * 1000 - 3_600_000)
    enriched: list[Record] = field(default_factory=list)  # on the topic, not read yet
    letters: Letters = field(default_factory=Letters)
    telemetry: Telemetry = field(default_factory=Telemetry)
    settings: Settings = field(init=False)
    pipeline: Pipeline = field(init=False)
    job: LabelJob = field(init=False)
    _offset: int = 0

    def __post_init__(self) -> None:
        self.settings = Settings.model_validate({"evaluators": {"enabled": EVALUATORS}, **self.sections})
        self.pipeline = assemble(self.settings, None).pipeline
        self.restart_jobs()

    def restart_jobs(self) -> None:
        """A new process, which remembers nothing."""
        self.job = LabelJob(self.database, self.settings.kafka, 1 << 20, self.telemetry, self.send)

    def placed(self, topic: str, value: Any, headers: Any = ()) -> StoredRecord:
        """A message at the end of its topic."""
        self._offset += 1
        self.now_ms += 1000
        encoded = value if isinstance(value, bytes) else json.dumps(value).encode()
        return StoredRecord(topic, 0, self._offset, self.now_ms, None, encoded, headers)

    def trace(self, trace_id: str, **changes: Any) -> StoredRecord:
        return self.placed("rag.traces", fields(**{"trace_id": trace_id, "time": self.now_ms, **changes}))

    def label(self, trace_id: str, **facts: Any) -> StoredRecord:
        return self.placed("rag.labels", {"trace_id": trace_id, **facts})

    def send(self, messages: Sequence[Message]) -> Sequence[bool]:
        """What the job sends lies on the topic."""
        self.enriched += [self.placed(one.topic, one.value, one.headers) for one in messages]
        return [True] * len(messages)

    def take(self, traces: Sequence[Record]) -> None:
        """As a lane does."""
        done = self.pipeline.process(traces)
        assert not done.dead
        ClickHouseSink(self.database).write(done.block)

    def read(self, labels: Sequence[Record]) -> None:
        """As who reads labels does."""
        reader = LabelReader(self.settings, self.database, self.telemetry, random.Random(1))
        asyncio.run(reader.take(labels, self.letters))

    def join(self) -> dict[str, int]:
        """One run of the job."""
        return {str(result): count for result, count in self.job.run(server_time(self.database)).items()}

    def settle(self) -> None:
        """Until nothing moves any more."""
        while self.join().get("sent") or self.enriched:
            waiting, self.enriched = self.enriched, []
            self.take(waiting)

    def reconcile(self) -> None:
        """As the jobs do."""
        tombstone_moved_traces(self.database, 60, server_time(self.database))
        marked = self.database.rows(
            "SELECT DISTINCT run_id, app, environment, toUnixTimestamp(start) AS start FROM dirty_windows"
        )
        delete_replaced(self.database, [WindowKey(**row) for row in marked], 60)

    def rows(self, table: str, trace_id: str = "") -> list[dict[str, Any]]:
        """Of one trace, or of all, as who looks at the tables sees them."""
        where = f"WHERE trace_id = '{trace_id}'" if trace_id else ""
        order = "evaluator, trace_id" if table == "scores" else "trace_id, version"
        return self.database.rows(f"SELECT {TABLES[table]} FROM {table} FINAL {where} ORDER BY {order}")

    def score(self, trace_id: str, evaluator: str) -> dict[str, Any]:
        (found,) = [row for row in self.rows("scores", trace_id) if row["evaluator"] == evaluator]
        return found

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        return {table: self.rows(table) for table in TABLES}

    def count(self, metric: str, **labels: str) -> float:
        return self.telemetry.registry.get_sample_value(f"ragtide_{metric}_total", labels) or 0.0
