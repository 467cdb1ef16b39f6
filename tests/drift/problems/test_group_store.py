"""The view `problems` names the parent that Python finds."""

from datetime import timedelta
from typing import Any

import pytest

from ragtide.drift.leadership import elect
from ragtide.drift.problems.group_store import record_groups
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.sample_rows import NOON, event

pytestmark = pytest.mark.clickhouse

RETRIEVAL: dict[str, Any] = {"metric": "context_relevancy.score", "type": "retrieval"}


def shown(database: Database) -> dict[tuple[str, int], tuple[str, int]]:
    rows = database.rows("SELECT problem_id, episode, parent_id, parent_episode FROM problems")
    return {(row["problem_id"], row["episode"]): (row["parent_id"], row["parent_episode"]) for row in rows}


def test_the_parent_is_stored_as_long_as_there_is_one(database: Database) -> None:
    def record(minutes: float) -> int:
        return record_groups(database, NOON + timedelta(minutes=minutes), elect(database, "jobs"))

    database.insert("problem_events", [event("answers", "a1", "opened", 1, NOON)])
    assert record(0) == 0
    assert shown(database) == {("answers", 1): ("", 0)}
    database.insert("problem_events", [event("chunks", "c1", "opened", 2, NOON + timedelta(minutes=1), **RETRIEVAL)])
    assert (record(1), record(2)) == (1, 0), "what is stored is not stored again"
    assert shown(database) == {("answers", 1): ("chunks", 2), ("chunks", 2): ("", 0)}
    ends = NOON + timedelta(minutes=9)
    database.insert("problem_events", [event("chunks", "c2", "resolved", 2, ends, **RETRIEVAL)])
    assert (record(10), record(30)) == (0, 1)
    assert shown(database)["answers", 1] == ("", 0), "it outlasted its parent"


def test_groups_of_problems_that_are_over_stay(database: Database) -> None:
    at = NOON + timedelta(minutes=9)
    database.insert(
        "problem_events",
        [
            event("answers", "a1", "opened", 1, NOON),
            event("chunks", "c1", "opened", 1, NOON, **RETRIEVAL),
            event("answers", "a2", "resolved", 1, at),
            event("chunks", "c2", "resolved", 1, at, **RETRIEVAL),
        ],
    )
    term = elect(database, "jobs")
    assert record_groups(database, at, term) == 1
    database.insert("problem_events", [event("answers", "a3", "opened", 2, NOON + timedelta(days=9))])
    assert record_groups(database, NOON + timedelta(days=9), term) == 0
    assert shown(database) == {("answers", 1): ("chunks", 1), ("answers", 2): ("", 0), ("chunks", 1): ("", 0)}
