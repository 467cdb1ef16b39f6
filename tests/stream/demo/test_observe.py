from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import DeadLetterRow, ProgressRow, ScoreRow, TraceRow
from ragtide.stream.demo.observe import Point, Snapshot, describe_delay, observe

pytestmark = pytest.mark.clickhouse


class WindowRow(NamedTuple):
    run_id: str
    size_s: int
    app: str
    metric: str
    start: datetime
    prompt_version: str
    segment: str
    segment_value: str
    seen: int
    scored: int
    sum: float
    version: int


def trace(run_id: str, trace_id: str, time: datetime) -> TraceRow:
    return TraceRow(
        run_id, "app", "", time, trace_id, 1, "", "", "", "", "m", "", "", "", None, None, None, None, None, "",
        [], [], {}, "", "", "t", 0, 0,
    )  # fmt: skip


def score(run_id: str, trace_id: str, time: datetime, status: str) -> ScoreRow:
    return ScoreRow(
        run_id, "app", "", "e", time, trace_id, 1, status, "", {}, {}, {}, "", [], "f", 1.0, "m", "", {}
    )  # fmt: skip


def test_an_empty_database_is_a_pipeline_at_rest(database: Database) -> None:
    snapshot = observe(database, base_s=10, keep=5)
    assert (snapshot.stored, snapshot.rate, snapshot.scores, snapshot.dead_letters) == (0, 0.0, 0, 0)
    assert (dict(snapshot.lag), dict(snapshot.series)) == ({}, {})


def test_live_traffic_is_counted_and_replays_are_not(database: Database) -> None:
    now = datetime.now(UTC)
    database.insert("traces", [trace("live", f"t{i}", now) for i in range(10)] + [trace("replay", "r", now)])
    database.insert("traces", [trace("live", "t0", now)])  # delivered again
    database.insert(
        "scores",
        [score("live", "t1", now, "scored"), score("live", "t2", now, "failed"), score("replay", "r", now, "scored")],
    )
    database.insert("dead_letters", [DeadLetterRow("live", "t", 0, 1, now, "not_json", "", "decode", 1, "")])
    database.insert("progress", [ProgressRow("fast", "t", p, "w", now, 9, lag) for p, lag in ((0, 3), (1, 4))])
    snapshot = observe(database, base_s=10, keep=5)
    assert (snapshot.stored, snapshot.rate, snapshot.scores, snapshot.dead_letters) == (10, 2.0, 1, 1)
    assert dict(snapshot.lag) == {"fast": 7}


def test_the_means_of_the_last_windows_over_all_models_and_prompts(database: Database) -> None:
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=30)
    older, old = start - timedelta(seconds=10), start - timedelta(hours=1)

    def window(
        at: datetime,
        scored: int,
        total: float,
        *,
        prompt: str = "v1",
        segment: str = "",
        run: str = "live",
        size: int = 10,
    ) -> WindowRow:
        return WindowRow(run, size, "app", "e.m", at, prompt, segment, "x" if segment else "", 20, scored, total, 1)

    database.insert(
        "windows",
        [
            window(older, 0, 0.0),
            window(start, 10, 4.0),
            window(start, 30, 24.0, prompt="v2"),
            window(start, 5, 0.0, segment="tenant"),
            window(start, 5, 0.0, run="replay"),
            window(start, 5, 0.0, size=60),
            window(old, 5, 0.0),
        ],
    )
    series = observe(database, base_s=10, keep=12).series
    assert series == {"e.m": [Point(older, None, 0, 20), Point(start, 0.7, 40, 40)]}
    judged = observe(database, base_s=10, keep=12).judged_until
    assert judged == {"e.m": start + timedelta(seconds=10)}


def test_a_delay_is_told_once_it_is_longer_than_usual() -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    ends = {"fast": now - timedelta(seconds=5), "slow": now - timedelta(seconds=37)}
    snapshot = Snapshot(0, 0.0, 0, {}, 0, {}, ends)
    assert describe_delay(snapshot, ["fast", "slow", "other"], now, 24) == "jobs are 37 s behind"
    assert describe_delay(snapshot, ["fast"], now, 24) == ""
    assert describe_delay(snapshot, ["other"], now, 24) == "no window is judged yet"
