"""A run's windows close when it is complete, count each trace once however it was read, and are nobody else's."""

from pathlib import Path

import pytest

from drift.jobs import Jobs, server_time
from drift.leadership import Term
from drift.settings import JobSettings, RuleSettings, WindowSettings
from evaluators import registry
from sinks.clickhouse.database import Database
from stream.replay.loop import ReplayProgress
from tests.stream.pipe.replaying import Stopped, file_source, go, lines, traces

pytestmark = pytest.mark.clickhouse


def jobs(database: Database) -> Jobs:
    term = Term(1, server_time(database))
    return Jobs(database, registry.load(), WindowSettings(), RuleSettings(), JobSettings(), term)


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
        go(database, file_source(file), tell=stop)
    watching.watch(server_time(database))
    assert counted(database) == []
    go(database, file_source(file))
    watching.watch(server_time(database))
    closed = [{"run_id": "r", "seen": 150, "scored": 150, "revision": 1}]
    assert counted(database) == closed
    go(database, file_source(file))
    watching.watch(server_time(database))
    assert counted(database) == closed
    assert database.rows("SELECT DISTINCT run_id FROM windows") == [{"run_id": "r"}]
    assert not database.rows("SELECT 1 FROM watermarks")
    assert not database.rows("SELECT 1 FROM problem_events")
