"""The jobs' sign of life, for whoever watches the watchers: an alert in Grafana reads it."""

from typing import NamedTuple

from drift.leadership import Term
from sinks.clickhouse.database import Database


class JobRunRow(NamedTuple):
    """Table `job_runs`: the last success of each job, at the server's time."""

    job: str
    epoch: int


def record_run(database: Database, job: str, term: Term) -> None:
    """Say that the job was done; raises `Transient` where the database is away."""
    database.insert("job_runs", [JobRunRow(job, term.epoch)])
