"""One trace, whatever its messages: sent twice, with other contents, in another minute, from another app."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.failures.bad_records import trace
from tests.failures.site import Message, of
from tests.stream.core.traffic import Broker

pytestmark = [pytest.mark.broker, pytest.mark.clickhouse]

WINDOWS = """
    SELECT app, start, seen, scored, sum FROM windows FINAL
    WHERE run_id = 'live' AND size_s = 60 AND segment = '' AND metric = 'inputs.answer_words'
"""
PLACES = "SELECT app, time, trace_id FROM {} FINAL"


class Hour:
    """Minutes of the last hour."""

    def __init__(self) -> None:
        self._start = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=30)

    def at(self, minute: int, second: int = 5) -> datetime:
        return self._start + timedelta(minutes=minute, seconds=second)

    def message(self, trace_id: str, minute: int, words: int, app: str = "shop") -> Message:
        time = self.at(minute).isoformat()
        return Message(trace(trace_id, time=time, app=app, answer=" ".join(["word"] * words)), trace_id.encode())


def test_the_latest_message_alone_counts_wherever_it_moved(broker: Broker, database: Database, tmp_path: Path) -> None:
    hour = Hour()
    twice = hour.message("twice", 0, words=2)
    first = [
        twice,
        twice,
        hour.message("changed", 0, words=4),
        hour.message("moved", 0, words=8),
        hour.message("left alone", 0, words=16),
        hour.message("lone", 3, words=128),  # will leave an empty window behind
    ]
    later = [
        twice,
        hour.message("changed", 0, words=5),
        hour.message("moved", 1, words=32),
        hour.message("moved", 2, words=64),
        hour.message("lone", 4, words=256, app="search"),
    ]
    site = of(tmp_path, broker, database, {"evaluators": {"enabled": ["inputs"]}})

    def windows() -> dict[tuple[str, datetime], tuple[int, int, float]]:
        return {(row["app"], row["start"]): (row["seen"], row["scored"], row["sum"]) for row in database.rows(WINDOWS)}

    with site.up():
        worker, jobs = site.worker(), site.jobs()
        site.produce(first)
        before = {("shop", hour.at(0, 0)): (4, 4, 30.0), ("shop", hour.at(3, 0)): (1, 1, 128.0)}
        site.until(lambda: windows() == before, "windows of the first messages")
        site.produce(later)
        after = {
            ("shop", hour.at(0, 0)): (3, 3, 23.0),
            ("shop", hour.at(2, 0)): (1, 1, 64.0),
            ("search", hour.at(4, 0)): (1, 1, 256.0),
        }
        emptied = {("shop", hour.at(3, 0)): (0, 0, 0.0)}
        passed_by = {("shop", hour.at(1, 0)): (0, 0, 0.0)}  # only where a roll-up came between its two messages
        site.until(lambda: windows() in (after | emptied, after | emptied | passed_by), "windows of the latest alone")
        assert jobs.stop() == 0, site.logs()
        assert worker.stop() == 0, site.logs()

    places = {
        "twice": ("shop", hour.at(0)),
        "changed": ("shop", hour.at(0)),
        "moved": ("shop", hour.at(2)),
        "left alone": ("shop", hour.at(0)),
        "lone": ("search", hour.at(4)),
    }
    for table in ("traces", "trace_texts", "scores"):
        rows = database.rows(PLACES.format(table))
        assert sorted((row["trace_id"], row["app"], row["time"]) for row in rows) == sorted(
            (trace_id, app, time) for trace_id, (app, time) in places.items()
        )
