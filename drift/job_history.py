"""Record every run of a job; an alert in Grafana reads the last success of each."""

from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift.leadership import Term
from ragtide.sinks.clickhouse.database import Database

_LONGEST_WHY = 500  # characters


class StopRequested(Exception):
    """The process ends and the job stopped early: no success and no failure. The next run continues."""


class RunResult(NamedTuple):
    """Number of items that a run read (windows, series, records, …) and raised (events, insights, messages)."""

    read: int
    raised: int


class JobRun(NamedTuple):
    """Table `job_history`. `started_at` by the server's clock; `failed` is the reason of a failure, else empty.

    `read` and `raised` are of runs that did not fail.
    """

    job: str
    epoch: int
    started_at: datetime
    took_s: float
    failed: str = ""
    read: int | None = None
    raised: int | None = None

    @property
    def finished_at(self) -> datetime:
        """When it ended."""
        return self.started_at + timedelta(seconds=self.took_s)


class _Success(NamedTuple):
    """Table `job_runs`: the last success of each job, at the server's time."""

    job: str
    epoch: int


def record_run(database: Database, job: str, term: Term, started: datetime, took_s: float, result: RunResult) -> None:
    """Record a success; raises `Transient` if the database is down."""
    database.insert("job_history", [JobRun(job, term.epoch, started, took_s, "", result.read, result.raised)])
    database.insert("job_runs", [_Success(job, term.epoch)])


def record_failure(database: Database, job: str, term: Term, started: datetime, took_s: float, why: str) -> None:
    """Record a failure; `why` quotes no trace and is not empty. Raises `Transient` as `record_run` does."""
    database.insert("job_history", [JobRun(job, term.epoch, started, took_s, why[:_LONGEST_WHY])])


def seconds_since_success(database: Database, job: str) -> float | None:
    """Return the seconds since a job last succeeded, by the server's clock; None if it never did."""
    (row,) = database.rows(
        "SELECT count() AS n, dateDiff('ms', max(finished_at), now64(3)) / 1000 AS age_s "
        "FROM job_runs WHERE job = {job:String}",
        {"job": job},
    )
    return float(row["age_s"]) if row["n"] else None


def load_runs(database: Database, since: datetime, job: str = "", *, failed: bool = False, most: int) -> list[JobRun]:
    """Load the newest `most` runs of each job, of one job, or of failed ones; newest first."""
    rows = database.rows(
        f"SELECT {', '.join(JobRun._fields)} FROM job_history FINAL "
        "WHERE started_at >= {since:DateTime64(3, 'UTC')} AND ({job:String} = '' OR job = {job:String}) "
        f"{'AND notEmpty(failed) ' if failed else ''}"
        "ORDER BY started_at DESC, job LIMIT {most:UInt32} BY job",
        {"since": since, "job": job, "most": most},
    )
    return [JobRun(**row) for row in rows]
