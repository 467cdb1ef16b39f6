"""Runs as the tables hold them: what each read, how many rows it has, and the deletion of one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ragtide.drift.anomalies import load_pins
from ragtide.drift.jobs import server_time
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE, PROBE
from ragtide.stream.replay.runs import STARTED

# A deletion leaves these: the history of pins, and the run itself until all else is gone.
_NOT_OF_RUNS = ("baseline_pins", "runs")
_FIRST = "dirty_windows"  # without marks, jobs roll up nothing more of the run
_BEING_WRITTEN = timedelta(minutes=1)
_COLUMNS = (
    "run_id, source, state, traces, dead_letters, evaluators, fingerprints, settings_hash, position, started_at, "
    "updated_at"
)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A replay, or a backfill of live (`live:HASH`), with the number of its rows by table; a backfill has none."""

    run_id: str
    source: str
    state: str
    traces: int
    dead_letters: int
    evaluators: Sequence[str]
    fingerprints: Mapping[str, str]
    settings_hash: str
    position: str
    started_at: datetime
    updated_at: datetime
    rows: Mapping[str, int]

    @property
    def records(self) -> int:
        """Records read: each became a trace or a dead letter."""
        return self.traces + self.dead_letters


def stored_runs(database: Database, run_id: str | None = None) -> list[StoredRun]:
    """Every run, or this one; the newest first."""
    where = "" if run_id is None else "WHERE run_id = {run:String}"
    found = database.rows(
        f"SELECT {_COLUMNS} FROM runs FINAL {where} ORDER BY started_at DESC, run_id", {"run": run_id or ""}
    )
    counts = _row_counts(database, [row["run_id"] for row in found])
    return [StoredRun(**row, rows=counts.get(row["run_id"], {})) for row in found]


def check_deletable(database: Database, run: StoredRun) -> None:
    """Raise `ConfigError` for live traffic, for a run that is being written, and for the reference of a baseline."""
    if run.run_id in (LIVE, PROBE) or run.run_id.startswith(f"{LIVE}:"):
        raise ConfigError(f"{run.run_id} is live traffic; only replays can be deleted. Retention deletes live rows")
    age = server_time(database) - run.updated_at
    if run.state == STARTED and age < _BEING_WRITTEN:
        raise ConfigError(
            f"run {run.run_id} was written {age.total_seconds():.0f} s ago; stop its replay, then try again in a minute"
        )
    if pinned := sorted({pin.app for pin in load_pins(database).values() if pin.run_id == run.run_id}):
        raise ConfigError(
            f"run {run.run_id} is the pinned baseline of {', '.join(pinned)}; `ragtide baseline unpin APP` first"
        )


def delete_run(
    database: Database, run: StoredRun, progress: Callable[[str, int, int], None] = lambda what, done, of: None
) -> int:
    """Delete the run's rows from every table, then the run; return the number of rows.

    One statement for each partition, so that none runs long. If interrupted, repeat it. Raises as `check_deletable`.
    """
    check_deletable(database, run)
    bound = {"run": run.run_id}
    places = [(table, partition) for table in _tables(database) for partition in _partitions(database, table, bound)]
    for done, (table, partition) in enumerate(places):
        progress("partitions", done, len(places))
        database.command(f"DELETE FROM {table} IN PARTITION ID '{partition}' WHERE run_id = {{run:String}}", bound)
    database.command("DELETE FROM runs WHERE run_id = {run:String}", bound)
    return sum(run.rows.values())


def _tables(database: Database) -> list[str]:
    """Every table with rows of runs, marks of windows first."""
    rows = database.rows(
        """SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'
            AND name IN (SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'run_id')
            AND name NOT IN {excluded:Array(String)} ORDER BY name != {first:String}, name""",
        {"excluded": list(_NOT_OF_RUNS), "first": _FIRST},
    )
    return [row["name"] for row in rows]


def _partitions(database: Database, table: str, bound: Mapping[str, str]) -> Iterator[str]:
    sql = f"SELECT DISTINCT _partition_id AS id FROM {table} WHERE run_id = {{run:String}} ORDER BY id"
    return (row["id"] for row in database.rows(sql, bound))


def _row_counts(database: Database, runs: Sequence[str]) -> dict[str, dict[str, int]]:
    """Rows by run and table, replaced ones included; a table without rows of a run is left out."""
    found: dict[str, dict[str, int]] = {run: {} for run in runs}
    for table in _tables(database) if runs else ():
        sql = f"SELECT run_id, count() AS n FROM {table} WHERE run_id IN {{runs:Array(String)}} GROUP BY run_id"
        for row in database.rows(sql, {"runs": list(runs)}):
            found[row["run_id"]][table] = row["n"]
    return found
