"""Silences of problems: set in Alertmanager by people, read back by `ragtide.drift.notify`, shown with the problem."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from ragtide.sinks.clickhouse.database import Database


@dataclass(frozen=True, slots=True)
class ProblemSilence:
    """A silence of a problem: who set it, why, and until when."""

    silence_id: str
    created_by: str
    comment: str
    starts_at: datetime
    ends_at: datetime


def load_silences(
    database: Database, now: datetime, ids: Collection[str] = ()
) -> Mapping[str, tuple[ProblemSilence, ...]]:
    """Load the silences that hold at `now` by problem id, the one that ends last first. `ids`: of these problems."""
    fields = ", ".join(ProblemSilence.__dataclass_fields__)
    where = " AND problem_id IN {ids:Array(String)}" if ids else ""
    rows = database.rows(
        f"SELECT problem_id, {fields} FROM alert_silences FINAL WHERE ends_at > {{now:DateTime64(3, 'UTC')}}{where} "
        "ORDER BY ends_at DESC, silence_id LIMIT 1 BY problem_id, silence_id",
        {"now": now, **({"ids": sorted(ids)} if ids else {})},
    )
    found: dict[str, list[ProblemSilence]] = {}
    for row in rows:
        found.setdefault(row.pop("problem_id"), []).append(ProblemSilence(**row))
    return {problem_id: tuple(some) for problem_id, some in found.items()}
