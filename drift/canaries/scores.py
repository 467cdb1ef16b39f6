"""Scores of canaries as they are stored: one row per run, evaluator, canary and form."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.sinks.clickhouse.database import Database

Values = Mapping[datetime, Mapping[str, float]]  # by run, then by canary and its content


class CanaryScoreRow(NamedTuple):
    """Table `canary_scores`."""

    evaluator: str
    fingerprint: str
    run_at: datetime
    canary: str
    form: str
    content: str
    direction: int
    endpoint: str
    status: str
    reason: str
    metrics: Mapping[str, float]

    @property
    def subject(self) -> str:
        """What stays the same from run to run."""
        return f"{self.canary} {self.content}"


class JudgeRuns(NamedTuple):
    """The runs of one version of a judge, in order. Counts are of canaries as they are, in the newest run."""

    evaluator: str
    fingerprint: str
    endpoint: str
    runs: tuple[datetime, ...]
    scored: int
    failed: int


def load_judge_runs(database: Database, until: datetime) -> dict[str, JudgeRuns]:
    """Load the runs up to then of each judge, by evaluator. Of several versions the one with the newest run counts."""
    return {evaluator: versions[-1] for evaluator, versions in load_judge_versions(database, until).items()}


def load_judge_versions(database: Database, until: datetime) -> dict[str, list[JudgeRuns]]:
    """Load the runs up to then of all versions of each judge, by evaluator; the version with the newest run is last."""
    rows = database.rows(
        """
        SELECT evaluator, version, arraySort(groupArray((run_at, name, scored, failed))) AS runs
        FROM (
            SELECT toString(evaluator) AS evaluator, toString(fingerprint) AS version, run_at,
                max(toString(endpoint)) AS name, countIf(status = 'scored') AS scored,
                countIf(status = 'failed') AS failed
            FROM canary_scores FINAL WHERE run_at <= {until:DateTime64(3, 'UTC')} AND form = ''
            GROUP BY evaluator, version, run_at
        )
        GROUP BY evaluator, version ORDER BY evaluator, max(run_at), version""",
        {"until": until},
    )
    found: dict[str, list[JudgeRuns]] = {}
    for row in rows:
        _, endpoint, scored, failed = row["runs"][-1]
        runs = tuple(run_at for run_at, *_ in row["runs"])
        version = JudgeRuns(row["evaluator"], row["version"], endpoint, runs, scored, failed)
        found.setdefault(row["evaluator"], []).append(version)
    return found


def load_scored(
    database: Database, judges: Collection[JudgeRuns], runs: Collection[datetime], *, in_forms: bool = False
) -> list[CanaryScoreRow]:
    """Load the scores of these runs by these judges, in order of time; with `in_forms` those in other forms too."""
    if not judges or not runs:
        return []
    versions = ", ".join(f"({sql.text(one.evaluator)}, {sql.text(one.fingerprint)})" for one in judges)
    times = ", ".join(f"fromUnixTimestamp64Milli({round(at.timestamp() * 1_000)}, 'UTC')" for at in sorted(runs))
    forms = "" if in_forms else "AND form = '' "
    rows = database.rows(
        f"SELECT {', '.join(CanaryScoreRow._fields)} FROM canary_scores FINAL WHERE status = 'scored' "
        f"AND (evaluator, fingerprint) IN ({versions}) AND run_at IN ({times}) {forms}"
        "ORDER BY run_at, evaluator, canary, form"
    )
    return [CanaryScoreRow(**row) for row in rows]


def values_of(rows: Iterable[CanaryScoreRow], evaluator: str, metric: str) -> Values:
    """Return the values of one metric of canaries as they are."""
    found: dict[datetime, dict[str, float]] = {}
    for row in rows:
        if row.evaluator == evaluator and not row.form and metric in row.metrics:
            found.setdefault(row.run_at, {})[row.subject] = row.metrics[metric]
    return found
