"""Looks at open problems: only what changed is read again, and nothing that changed is missed."""

from collections.abc import Collection
from datetime import timedelta

import pytest

from ragtide.drift.jobs import server_time
from ragtide.drift.notify import open_problems
from ragtide.drift.notify.alert import AlertContext
from ragtide.drift.notify.open_problems import OpenProblems
from ragtide.drift.problems import Problem, load_problems
from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.sample_rows import NOON, event

pytestmark = pytest.mark.clickhouse


class Reads:
    """Stands before `load_problems`: notes what is read, and fails once if told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ids: list[set[str]] = []
        self.fails = False
        monkeypatch.setattr(open_problems, "load_problems", self._load)

    def _load(self, database: Database, *, ids: Collection[str]) -> list[Problem]:
        if self.fails:
            self.fails = False
            raise Transient("the database is down")
        self.ids.append(set(ids))
        return load_problems(database, ids=ids)


def opens(database: Database, *problems: str) -> None:
    rows = [event(one, f"{one}-1", "opened", 1, NOON, aspect="inputs", metric=f"quality.{one}") for one in problems]
    database.insert("problem_events", rows)


def test_a_look_reads_only_problems_with_new_events(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, problems = Reads(monkeypatch), OpenProblems(database, AlertContext())
    opens(database, "p1", "p2")
    now = server_time(database)
    first = problems.look(now)
    assert problems.look(now) is first
    opens(database, "p3")
    assert set(problems.look(now).firing) == {"p1", "p2", "p3"}
    opens(database, "p4")
    assert set(problems.look(now).firing) == {"p1", "p2", "p3", "p4"}
    later = event("p1", "p1-2", "updated", 1, NOON + timedelta(minutes=1), aspect="inputs", description="it fell more")
    database.insert("problem_events", [later])
    assert "it fell more" in problems.look(now).firing["p1"].annotations["description"]
    assert reads.ids[0] == {"p1", "p2"}
    assert reads.ids[-2:] == [{"p4"}, {"p1"}]


def test_a_look_that_failed_is_made_up_for_by_the_next(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, problems = Reads(monkeypatch), OpenProblems(database, AlertContext())
    now = server_time(database)
    problems.look(now)
    for name in ("p1", "p2"):
        opens(database, name)
        reads.fails = True
        with pytest.raises(Transient):
            problems.look(now)
        assert name in problems.look(now).firing
