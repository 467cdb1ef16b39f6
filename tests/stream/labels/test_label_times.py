"""A label's time is its message's timestamp: one that no time can be, or that is over, makes no row."""

import json

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.ingest.timeliness import CLOCK_MARGIN_S
from tests.stream.labels.scene import Scene

pytestmark = pytest.mark.clickhouse

DAY_MS = 86_400_000


def label(offset: int, timestamp: int) -> StoredRecord:
    value = json.dumps({"trace_id": f"t-{offset}", "verdict": {"thumbs": "up"}}).encode()
    return StoredRecord("rag.labels", 0, offset, timestamp, None, value)


def test_a_label_without_a_usable_timestamp_is_a_dead_letter(database: Database) -> None:
    scene = Scene(database)
    margin_ms = int(CLOCK_MARGIN_S * 1000)
    # The scene's clock is an hour behind the reader's.
    ahead_ms = scene.now_ms + 2 * 3_600_000 + margin_ms
    scene.read([label(1, -1), label(2, 0), label(3, ahead_ms), label(4, scene.now_ms + margin_ms)])
    assert [row["trace_id"] for row in scene.rows("labels")] == ["t-4"]
    reasons = {letter.record.offset: letter.reason for letter in scene.letters.sent}
    assert reasons == {1: "no_timestamp", 2: "no_timestamp", 3: "timestamp_in_the_future"}
    rows = database.rows("SELECT offset, reason FROM dead_letters FINAL")
    assert {row["offset"]: row["reason"] for row in rows} == reasons


def test_a_label_older_than_labels_are_kept_is_counted_and_not_stored(database: Database) -> None:
    scene = Scene(database, {"retention": {"labels_days": 10}})
    scene.read([label(1, scene.now_ms - 10 * DAY_MS), label(2, scene.now_ms - 9 * DAY_MS)])
    assert [row["trace_id"] for row in scene.rows("labels")] == ["t-2"]
    assert scene.letters.sent == []
    assert (scene.count("labels", kind="expired"), scene.count("labels", kind="verdict")) == (1, 1)
