"""Scores of canaries as they are stored: one row per run, evaluator, canary and form."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.sinks.clickhouse.database import Database

STALE = timedelta(days=21)  # three runs at the longest interval
_OVER_HOURS = 2  # since a run began; what limits left out is not waited for longer
_RUNS_PER_QUERY = 500
Values = Mapping[datetime, Mapping[str, float]]  # by run, then by canary and its content


class CanaryScoreRow(NamedTuple):
    """Table `canary_scores`."""

    evaluator: str
    fingerprint: str
    run_at: datetime
    scheduled: bool
    canaries: int
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
    """The runs of one version of a judge, in order. Counts are of canaries as they are, in the newest run.

    `subjects` are the canaries that the judge applies to in the newest run, with or without a score. `scored_runs` are
    the runs in which at least half of them have a score.
    """

    evaluator: str
    fingerprint: str
    endpoint: str
    runs: tuple[datetime, ...]
    scored_runs: tuple[datetime, ...]
    subjects: frozenset[str]
    scored: int
    failed: int
    not_applicable: int


def load_judge_runs(database: Database, until: datetime) -> dict[str, JudgeRuns]:
    """Load the runs up to then of each judge, by evaluator. Of several versions the one that is in use counts."""
    return {evaluator: versions[-1] for evaluator, versions in load_judge_versions(database, until).items()}


def load_judge_versions(database: Database, until: datetime) -> dict[str, list[JudgeRuns]]:
    """Load the runs up to then of all versions of each judge, by evaluator; the version that is in use is last.

    Only runs count that are complete, or began two hours ago: until then missing canaries may follow. The version in
    use has the newest run of the job. A run of the command may try another model, so it counts only if the job had none
    for three weeks before it.
    """
    rows = database.rows(
        """
        SELECT evaluator, version, subjects, arraySort(arrayMap(
            run -> (run.1, run.2, length(run.3), run.4, run.5, length(arrayIntersect(run.3, subjects))), all
        )) AS runs
        FROM (
            SELECT evaluator, version, argMax(applicable, run_at) AS subjects,
                max(if(by_job, run_at, run_at - INTERVAL {days:UInt32} DAY)) AS used_at,
                groupArray((run_at, name, with_score, failed, not_applicable)) AS all
            FROM (
                SELECT toString(evaluator) AS evaluator, toString(fingerprint) AS version, run_at,
                    max(toString(endpoint)) AS name, max(scheduled) AS by_job,
                    groupUniqArrayIf(concat(canary, ' ', content), status != 'not_applicable') AS applicable,
                    groupUniqArrayIf(concat(canary, ' ', content), status = 'scored') AS with_score,
                    countIf(status = 'failed') AS failed, countIf(status = 'not_applicable') AS not_applicable
                FROM canary_scores FINAL WHERE run_at <= {until:DateTime64(3, 'UTC')} AND form = ''
                GROUP BY evaluator, version, run_at
                HAVING count() >= max(canaries) OR run_at < {until:DateTime64(3, 'UTC')} - INTERVAL {hours:UInt32} HOUR
            )
            GROUP BY evaluator, version
        )
        ORDER BY evaluator, used_at, version""",
        {"until": until, "days": STALE.days, "hours": _OVER_HOURS},
    )
    found: dict[str, list[JudgeRuns]] = {}
    for row in rows:
        subjects = frozenset(row["subjects"])
        runs = tuple(run_at for run_at, *_ in row["runs"])
        enough = tuple(run_at for run_at, *_, known in row["runs"] if 2 * known >= len(subjects))
        _, endpoint, *counts, _ = row["runs"][-1]
        version = JudgeRuns(row["evaluator"], row["version"], endpoint, runs, enough, subjects, *counts)
        found.setdefault(row["evaluator"], []).append(version)
    return found


def load_scored(
    database: Database, judges: Collection[JudgeRuns], runs: Collection[datetime], *, in_forms: bool = False
) -> list[CanaryScoreRow]:
    """Load the scores of these runs by these judges, in order of time; with `in_forms` those in other forms too."""
    if not judges:
        return []
    versions = ", ".join(f"({sql.text(one.evaluator)}, {sql.text(one.fingerprint)})" for one in judges)
    forms = "" if in_forms else "AND form = '' "
    ordered = sorted(runs)
    found: list[CanaryScoreRow] = []
    for first in range(0, len(ordered), _RUNS_PER_QUERY):
        some = ordered[first : first + _RUNS_PER_QUERY]
        times = ", ".join(f"fromUnixTimestamp64Milli({round(at.timestamp() * 1_000)}, 'UTC')" for at in some)
        rows = database.rows(
            f"SELECT {', '.join(CanaryScoreRow._fields)} FROM canary_scores FINAL WHERE status = 'scored' "
            f"AND (evaluator, fingerprint) IN ({versions}) AND run_at IN ({times}) {forms}"
            "ORDER BY run_at, evaluator, canary, form"
        )
        found += (CanaryScoreRow(**row) for row in rows)
    return found


def values_of(rows: Iterable[CanaryScoreRow], judge: JudgeRuns, metric: str) -> Values:
    """Return the values of one metric of the canaries of the judge's newest run, as they are."""
    found: dict[datetime, dict[str, float]] = {}
    for row in rows:
        if (
            row.evaluator == judge.evaluator
            and not row.form
            and metric in row.metrics
            and row.subject in judge.subjects
        ):
            found.setdefault(row.run_at, {})[row.subject] = row.metrics[metric]
    return found
