"""A replay of a file leaves the same rows however often it is run or stopped, and touches nothing of live's."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import Block
from ragtide.stream.assembly import assemble
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.replay.loop import ReplayProgress
from ragtide.stream.replay.runs import Runs
from ragtide.stream.settings.loader import Settings
from tests.stream.pipe.replaying import (
    BASE_MS,
    DAY_MS,
    Stopped,
    everything,
    fields,
    file_source,
    go,
    lines,
    rows,
    settings,
    traces,
)

pytestmark = pytest.mark.clickhouse


def test_a_file_becomes_a_run(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(
        lines(*traces(25), "", "not json", {"app": "x"}, fields(trace_id="old", time="1970-01-01T00:00:00Z"))
    )
    told: list[ReplayProgress] = []
    done = go(database, file_source(file), report=told.append)
    assert (done.state, done.traces, done.dead_letters) == ("completed", 26, 2)
    assert [row["trace_id"] for row in rows(database, "traces")][:3] == ["old", "t-0", "t-1"]
    assert len(rows(database, "traces")) == len(rows(database, "trace_texts")) == 26
    assert len(rows(database, "scores")) == 52
    dead = [(row["topic"], row["offset"], row["reason"]) for row in rows(database, "dead_letters")]
    assert dead == [("file:traces.jsonl", 27, "not_json"), ("file:traces.jsonl", 28, "missing_trace_id")]
    assert told[-1] == ReplayProgress(file.stat().st_size, file.stat().st_size, 26, 2)
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

    def stop_at(number: int) -> Callable[[ReplayProgress], None]:
        def report(progress: ReplayProgress) -> None:
            if progress.traces >= number:
                raise Stopped

        return report

    read: list[int] = []
    for number in (30, 30, 70):
        with pytest.raises(Stopped):
            go(database, file_source(file), report=stop_at(number))
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


def test_rows_of_a_run_hold_user_ids_under_one_key(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(fields(user_id="u-1")))
    one, other = (settings(privacy={"hash_users": True, "hash_key": key}) for key in ("first secret", "second secret"))
    go(database, file_source(file), chosen=one)
    for changed in (other, settings()):
        with pytest.raises(ConfigError, match="privacy") as told:
            go(database, file_source(file), chosen=changed)
        assert "secret" not in str(told.value)
    assert go(database, file_source(file), chosen=one).traces == 1
    assert "secret" not in str(database.rows("SELECT * FROM runs"))
    go(database, file_source(file), "plain", chosen=settings(privacy={"hash_key": "first secret"}))
    assert go(database, file_source(file), "plain", chosen=settings()).traces == 1  # a key that is not used


def test_rows_of_a_run_hold_texts_masked_in_one_way(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(fields(answer="mail a@b.org")))

    def by(kinds: str, **privacy: str) -> Settings:
        """None of the evaluators by which texts are masked runs."""
        of = {"enabled": ["inputs"], "params": {"pii_leakage": {"kinds": [kinds]}}}
        return settings(evaluators=of, privacy=privacy)

    one, other = (by("email", store_texts="hashed", hash_key=key) for key in ("first secret", "second secret"))
    go(database, file_source(file), chosen=one)
    with pytest.raises(ConfigError, match="privacy") as told:
        go(database, file_source(file), chosen=other)
    assert "secret" not in str(told.value)
    masked = by("email", store_texts="masked", hash_key="first secret")
    go(database, file_source(file), "masked", chosen=masked)
    with pytest.raises(ConfigError, match="privacy"):
        go(database, file_source(file), "masked", chosen=by("card", store_texts="masked"))
    stored = [rows(database, "trace_texts", run)[0]["answer"] for run in ("r", "masked")]
    assert re.fullmatch(r"mail \[email [0-9a-f]{16}\]", stored[0])
    assert stored[1] == "mail [email]"
    assert go(database, file_source(file), "masked", chosen=by("email", store_texts="masked")).traces == 1  # key unused


def test_of_a_trace_told_twice_in_a_file_the_later_line_stands(database: Database, tmp_path: Path) -> None:
    """In two blocks, so that the tables decide."""
    file = tmp_path / "traces.jsonl"
    first, second = (fields(trace_id="twice", time=BASE_MS, answer=answer) for answer in ("before", "after"))
    file.write_text(lines(first, *traces(30), second))
    for _ in range(2):
        assert go(database, file_source(file), block_rows=10).traces == 32
        assert [row["answer"] for row in rows(database, "trace_texts") if row["trace_id"] == "twice"] == ["after"]
        assert len(rows(database, "scores")) == 62


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
    from ragtide.stream.ingest.records import StoredRecord

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
