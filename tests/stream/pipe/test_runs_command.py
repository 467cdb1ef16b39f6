"""`ragtide runs` on the real engine: what replays there are, and that one is deleted whole and nothing else."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragtide.drift.anomalies.pinning import save_pins
from ragtide.drift.anomalies.references import BaselinePin
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import DirtyRow
from ragtide.stream.cli import main
from ragtide.stream.replay.runs import RunRow, Runs
from ragtide.stream.replay.stored_runs import stored_runs
from tests.infra.fresh_database import reached
from tests.stream.pipe.replaying import file_source, go, lines, traces

pytestmark = pytest.mark.clickhouse
LATER = timedelta(minutes=5)


def runs(database: Database, *args: str, exit_code: int = 0) -> Result:
    variables = {"RAGTIDE_CONFIG": None, "COLUMNS": "200", **reached(database)}
    found = CliRunner().invoke(main, ["runs", *args], env=variables)
    assert found.exit_code == exit_code, found.output
    return found


def rows(database: Database) -> dict[tuple[str, str], int]:
    """Rows by table and run, in every table with a column `run_id`."""
    tables = database.rows(
        "SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'run_id' "
        "AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree')"
    )
    return {
        (table["table"], row["run_id"]): row["n"]
        for table in tables
        for row in database.rows(f"SELECT run_id, count() AS n FROM {table['table']} FINAL GROUP BY run_id")
    }


@pytest.fixture
def replayed(database: Database, tmp_path: Path) -> Database:
    """Runs a and b of the same file, with a dead letter."""
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(30), "no trace"))
    for run in ("a", "b"):
        go(database, file_source(file), run)
    return database


def test_runs_are_listed_and_shown(replayed: Database) -> None:
    head, *listed = runs(replayed, "list").output.splitlines()
    assert head.split()[:2] == ["run", "state"]
    assert {line.split()[0] for line in listed} == {"a", "b"}
    assert all("completed" in line and "traces.jsonl" in line for line in listed)
    found = {one["run_id"]: one for one in json.loads(runs(replayed, "list", "--json").output)}
    assert (found["a"]["traces"], found["a"]["dead_letters"]) == (30, 1)
    assert found["a"]["rows"]["traces"] == 30
    shown = runs(replayed, "show", "a").output
    assert "records:     31: 30 traces, 1 dead letters" in shown
    assert "traces 30" in shown
    assert "there is no 'bb'; did you mean b?" in runs(replayed, "show", "bb", exit_code=2).output


def test_a_deleted_run_is_gone_from_every_table_and_no_other_row_is(replayed: Database) -> None:
    before = rows(replayed)
    assert {table for table, run in before if run == "a"} >= {"traces", "scores", "trace_texts", "dead_letters", "runs"}
    assert "delete run a with" in runs(replayed, "delete", "a", exit_code=130).output
    assert rows(replayed) == before
    assert "deleted run a:" in runs(replayed, "delete", "a", "--yes").output
    assert rows(replayed) == {place: count for place, count in before.items() if place[1] != "a"}


@pytest.mark.parametrize("name", ["live", "live:0123456789ab"])
def test_live_traffic_is_never_deleted(replayed: Database, name: str) -> None:
    replayed.insert("dirty_windows", [DirtyRow("live", "docs", "", "fast", datetime.now(UTC), "m")])
    replayed.command("INSERT INTO windows (run_id, size_s, app, start) VALUES ('live', 60, 'docs', now())")
    Runs(replayed).store(RunRow("live:0123456789ab", "rag.traces", [], {}, "", "completed", "{}", 1, 0, 1, _past()))
    before = rows(replayed)
    assert "live traffic" in runs(replayed, "delete", name, "--yes", exit_code=2).output
    assert rows(replayed) == before


def test_a_run_that_is_being_written_and_a_pinned_one_stay(replayed: Database) -> None:
    Runs(replayed).store(RunRow("half", "rag.traces", [], {}, "", "started", "{}", 1, 0, 1, _past()))
    assert "stop its replay" in runs(replayed, "delete", "half", "--yes", exit_code=2).output
    now = datetime.now(UTC).replace(microsecond=0)
    save_pins(replayed, [BaselinePin("docs", "", "a", now - LATER, now, "release", "ada", 0, now)])
    assert "pinned baseline of docs" in runs(replayed, "delete", "a", "--yes", exit_code=2).output
    assert {run.run_id for run in stored_runs(replayed)} == {"a", "b", "half"}


def _past() -> datetime:
    return datetime.now(UTC) - LATER
