"""Whatever timestamps and headers producers choose, live inserts touch a number of days that settings state."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ragtide.sinks.bisect import write_or_reject
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.enriched import enrichment_headers
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.ingest.timeliness import CLOCK_MARGIN_S, Timeliness
from ragtide.stream.pipeline import SliceResult
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sections import IngestSettings
from tests.stream.pipe.records import AT_MS, clock, record
from tests.stream.pipe.test_pipeline import pipeline

DAY_MS = 86_400_000
NOW_MS = int(clock() * 1000)
KEPT_DAYS = 10


def hostile(now_ms: int) -> Iterator[StoredRecord]:
    """Records of 400 days past and 400 days to come, each in every way that could get round a limit."""
    for day in range(-400, 400):
        event_ms = now_ms + day * DAY_MS

        def sent(offset: int, timestamp: int, event_ms: int = event_ms, day: int = day) -> StoredRecord:
            return record(trace_id=f"t{day}-{offset}", time=event_ms, offset=offset, timestamp=timestamp)

        yield sent(0, -1)
        yield sent(1, 0)
        yield sent(2, event_ms)  # CreateTime: the producer says so
        yield sent(3, now_ms)
        yield replace(sent(4, now_ms), headers=enrichment_headers("rag.traces", 0, 4, event_ms, 1))
        yield replace(sent(5, now_ms), headers=enrichment_headers("file:traces.jsonl", 0, 5, 0, 1))
        yield replace(sent(6, -1), headers=enrichment_headers("rag.traces", 0, 6, event_ms, 1))
        yield replace(sent(7, event_ms), headers=enrichment_headers("rag.traces", 0, 7, event_ms, 1))


@pytest.mark.clickhouse
def test_hostile_times_touch_no_more_day_partitions_than_settings_state(database: Database) -> None:
    settings = Settings.model_validate(
        {"retention": {"traces_days": KEPT_DAYS}, "evaluators": {"enabled": ["operations"]}}
    )
    records = list(hostile(int(time.time() * 1000)))
    done = assemble(settings, "fast").pipeline.process(records)
    assert write_or_reject(ClickHouseSink(database), done.block) == []
    most = Timeliness.of(settings.ingest, settings.retention).max_days
    assert most == KEPT_DAYS + 4
    for table in ("traces", "trace_texts", "scores"):
        found = database.rows(
            "SELECT uniqExact(partition) AS days FROM system.parts "
            f"WHERE database = '{database.name}' AND table = '{table}' AND active"
        )
        assert KEPT_DAYS <= found[0]["days"] <= most, table
    assert done.decoded + len(done.dead) + done.skipped.total() == len(records)
    assert Counter(letter.reason for letter in done.dead).keys() == {
        "no_timestamp",
        "timestamp_in_the_future",
        "bad_enrichment",
        "too_old",
        "in_the_future",
    }
    assert done.skipped.keys() == {"expired"}


def processed(*, timely: bool = True, **changes: Any) -> SliceResult:
    return pipeline(timely=timely).process([record(**changes)])


def reasons(**changes: Any) -> list[str]:
    return [letter.reason for letter in processed(**changes).dead]


@pytest.mark.parametrize("timestamp", [0, -1, -AT_MS])
def test_a_record_without_timestamp_is_a_dead_letter_that_says_what_to_do(timestamp: int) -> None:
    done = processed(timestamp=timestamp)
    [letter] = done.dead
    assert letter.reason == "no_timestamp"
    assert "message.timestamp.type=LogAppendTime" in letter.detail
    assert done.block.traces == []
    assert len(processed(timestamp=timestamp, timely=False).block.traces) == 1


def test_a_record_from_more_than_a_day_ahead_of_the_clock_is_a_dead_letter() -> None:
    margin_ms = int(CLOCK_MARGIN_S * 1000)
    assert reasons(timestamp=NOW_MS + margin_ms, time=NOW_MS + margin_ms) == []
    assert reasons(timestamp=NOW_MS + margin_ms + 1, time=NOW_MS) == ["timestamp_in_the_future"]
    assert reasons(timestamp=NOW_MS + margin_ms + 1, time=NOW_MS, timely=False) == []


def test_what_is_older_than_scores_are_kept_is_counted_and_not_stored() -> None:
    oldest_ms = NOW_MS - 90 * DAY_MS
    assert len(processed(timestamp=oldest_ms, time=oldest_ms).block.traces) == 1
    done = processed(timestamp=oldest_ms, time=oldest_ms - 1)
    assert (done.skipped, done.dead, done.block.traces) == ({"expired": 1}, [], [])
    assert len(processed(timestamp=oldest_ms, time=oldest_ms - 1, timely=False).block.traces) == 1


def test_a_backlog_of_expired_records_stops_no_worker() -> None:
    """500 dead letters in a row would: a new group may begin a topic whose records are years old."""
    old_ms = NOW_MS - 365 * DAY_MS
    done = pipeline().process([record(trace_id=f"t{n}", timestamp=old_ms, time=old_ms) for n in range(600)])
    assert (done.skipped, done.dead, done.decoded) == ({"expired": 600}, [], 0)


def test_most_days_follows_from_the_settings() -> None:
    kept = RetentionSettings(traces_days=30)
    assert Timeliness.of(IngestSettings(), kept).max_days == 34
    assert Timeliness.of(IngestSettings(max_future_s=3 * 86_400), kept).max_days == 37
