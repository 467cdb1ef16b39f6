"""What a dry run says against what the jobs raised, and what the database holds."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from ragtide.drift.backtest.simulate import SimulatedProblem
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.store import load_problems
from ragtide.sinks.clickhouse.database import Database


class ProblemSummary(NamedTuple):
    """What can be said alike of a problem that is raised and of one that would be."""

    problem_id: str
    episode: int
    state: str
    key: tuple[str, ...]
    severity: str
    description: str
    resolved_at: datetime | None
    openings: tuple[datetime, ...]


def simulated_summaries(found: Iterable[SimulatedProblem]) -> set[ProblemSummary]:
    """Of a dry run."""
    return {_summary(one, one.openings) for one in found}


def raised_summaries(database: Database) -> set[ProblemSummary]:
    """By the jobs."""
    rows = database.rows(
        "SELECT problem_id, episode, at FROM problem_events FINAL WHERE event IN ('opened', 'reopened') ORDER BY at"
    )
    openings: dict[tuple[str, int], list[datetime]] = {}
    for row in rows:
        openings.setdefault((row["problem_id"], row["episode"]), []).append(row["at"])
    known = {
        (one.problem_id, one.episode): one
        for one in load_problems(database, states=("pending", "open", "resolved"), every_episode=True)
    }
    return {_summary(known[key], openings[key]) for key in openings}


def _summary(one: Problem | SimulatedProblem, openings: Sequence[datetime]) -> ProblemSummary:
    place = (one.app, one.environment, one.model, one.aspect, one.metric, one.segment, one.segment_value)
    said = (one.severity, one.description, one.resolved_at)
    return ProblemSummary(one.problem_id, one.episode, one.state, place, *said, tuple(openings))


def counts(database: Database) -> dict[str, int]:
    """Rows of every table, several versions of one counted once."""
    tables = database.rows(
        "SELECT name, engine FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
    )
    each = [
        f"SELECT '{table['name']}' AS name, count() AS n FROM {table['name']}"
        f"{'' if table['engine'] == 'MergeTree' else ' FINAL'}"
        for table in tables
    ]
    return {row["name"]: row["n"] for row in database.rows(" UNION ALL ".join(each))}
