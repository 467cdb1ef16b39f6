"""Stored scores, an export over a clock of the test's own, and what a receiver got."""

import gzip
import json
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any

from pydantic import SecretStr

from ragtide.drift.export import EventSender, Measured, ScoreExport
from ragtide.drift.export_settings import ExportSettings
from ragtide.evaluators import registry
from ragtide.sinks import sample
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.otlp_http import OtlpHttpClient
from ragtide.sinks.rows import ScoreRow, TraceRow
from tests.infra.webhook_receiver import Call, Receiver

REGISTRY = registry.load()
TIME = datetime.now(UTC).replace(microsecond=250_000) - timedelta(minutes=10)
SETTLED_S = 61.0  # after which a row is read
DELAY_S = 7.0
EPOCH = 1  # of a leader that no other one follows


def trace_id(number: int) -> str:
    return f"{number:032x}"


def score(number: int, evaluator: str = "groundedness", **other: Any) -> ScoreRow:
    """A live score; without other metrics, 0.75 of every primary one."""
    primary = {metric.key: 0.75 for metric in REGISTRY[evaluator].metrics if metric.primary}
    row = sample.score(
        trace_id(number), run_id="live", app="museum", environment="prod", evaluator=evaluator, time=TIME,
        version=7, status="scored", reason="", metrics=primary, evidence="[]", findings=[], fingerprint="f1",
    )  # fmt: skip
    return row._replace(**other)


def trace(number: int, **other: Any) -> TraceRow:
    row = sample.trace(trace_id(number), run_id="live", app="museum", environment="prod", time=TIME)
    return row._replace(**{"span_id": f"{number:016x}", **other})


_type_of_rows: Any = namedtuple  # mypy wants the fields as literals
StoredScore = _type_of_rows("StoredScore", (*ScoreRow._fields, "ingested_at"))


class HttpSender:
    """The client of the product, under a name."""

    name = "http"

    def __init__(self, url: str, **settings: Any) -> None:
        export = ExportSettings(url=SecretStr(url), **settings)
        self.client = OtlpHttpClient(
            export.url, export.headers, export.ca_file, export.timeout_s, export.signal, "otel.export"
        )
        self.connected, self.send = self.client.connected, self.client.send


def export_of(database: Database, sender: EventSender, every_s: float = 10.0, **settings: Any) -> ScoreExport:
    """An export whose measures nobody reads."""
    return ScoreExport(
        database, ExportSettings(**settings), sender, every_s, "1.0", lambda measured: None, lambda: repeat(DELAY_S)
    )


class Exporting:
    """An export over a clock of its own; its first run is over."""

    def __init__(self, database: Database, sender: EventSender, every_s: float = 10.0, **settings: Any) -> None:
        self.database = database
        self.measured: list[Measured] = []
        self._export = ScoreExport(
            database, ExportSettings(**settings), sender, every_s, "1.0", self.measured.append, self._delays
        )
        self.now = datetime.now(UTC).replace(microsecond=123_000)
        assert self.run(0) == 0, "the first run begins, and sends nothing"

    @staticmethod
    def _delays() -> Iterator[float]:
        return repeat(DELAY_S)

    def store(self, *rows: ScoreRow, after_s: float = 0.0) -> None:
        """Insert scores that were stored at the clock of the test."""
        self.now += timedelta(seconds=after_s)
        self.database.insert("scores", [StoredScore(*row, self.now) for row in rows])

    def run(self, after_s: float = SETTLED_S) -> int:
        """One run, so long after the last step."""
        self.now += timedelta(seconds=after_s)
        return self._export.run(REGISTRY, EPOCH, self.now)

    def counts(self) -> dict[str, int]:
        """Events by outcome, over all runs."""
        found: dict[str, int] = {}
        for one in self.measured:
            for outcome, number in one.events.items():
                found[outcome] = found.get(outcome, 0) + number
        return found


def bodies(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """The batches of the calls, unpacked."""
    return [json.loads(gzip.decompress(call.body)) for call in calls]


def attributes_of(item: Mapping[str, Any]) -> dict[str, Any]:
    return {pair["key"]: next(iter(pair["value"].values())) for pair in item["attributes"]}


def records_of(batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Log records of a batch, their attributes as a plain object."""
    return [
        {**record, "attributes": attributes_of(record)}
        for resource in batch["resourceLogs"]
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]


def arrived(receiver: Receiver) -> list[dict[str, Any]]:
    """Every log record that came, whatever the answer was."""
    return [record for batch in bodies(receiver.calls) for record in records_of(batch)]


def exporting(database: Database, receiver: Receiver, **settings: Any) -> Exporting:
    """An export to the receiver, which may take half a second for an answer."""
    return Exporting(database, HttpSender(receiver.url, timeout_s=0.5), **settings)


def ids(receiver: Receiver) -> list[str]:
    return [record["traceId"] for record in arrived(receiver)]
