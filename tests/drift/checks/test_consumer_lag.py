"""Records that may be deleted before they are read are a problem until the wait is short again, or the group gone."""

import pytest

from ragtide.drift.checks.consumer_lag import ConsumerLag, GroupLag
from ragtide.drift.settings import RuleSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World

pytestmark = pytest.mark.clickhouse
RULES = RuleSettings(retention_share=0.5, update_every_s=0)
RETENTION_S = 7200.0


class CheckRuns:
    """One look a minute; each of what a group and topic say, by the age of the oldest record."""

    def __init__(self, database: Database) -> None:
        self.world = World(database, rules=RULES)
        self.waits: list[GroupLag] = []
        self.lag = ConsumerLag(lambda: self.waits)
        self.count = 0

    def look(self, *ages: float | None, group: str = "ragtide-fast") -> list[str]:
        self.waits = [GroupLag(group, "rag.traces", age, RETENTION_S) for age in ages]
        self.count += 1
        now = self.world.at(60 * self.count)
        events = self.world.check(self.lag, now).events
        return [f"{event.event} {event.segment} {event.segment_value}" for event in events]


def test_a_wait_that_does_not_shrink_is_a_problem_until_it_is_short(database: Database) -> None:
    looks = CheckRuns(database)
    for age in (3600.0, 3600.0):
        assert looks.look(age) == [], "half of the retention is allowed"
    assert looks.look(4500.0) == ["opened retention ragtide-fast rag.traces"]
    (problem,) = looks.world.open()
    assert (problem.type, problem.code, problem.aspect, problem.app) == ("storage", "P0203 Scaling", "storage", "")
    assert (problem.severity, problem.attributes["value"], problem.attributes["retention_s"]) == (
        "warning",
        0.625,
        RETENTION_S,
    )
    assert "Group ragtide-fast is 1.25 h behind on rag.traces, 62.5 % of its 2 h retention" in problem.description
    assert "retention.ms" in problem.actions[1], "shorter, it would delete them sooner"
    assert looks.look(6600.0) == ["updated retention ragtide-fast rag.traces"]
    assert looks.world.open()[0].severity == "critical"
    for age in (4000.0, 3000.0):
        assert looks.look(age) == [], "it shrinks, and is not short yet"
    assert looks.look(2800.0) == ["resolved retention ragtide-fast rag.traces"]


def test_a_wait_that_shrinks_or_was_seen_once_is_none(database: Database) -> None:
    looks = CheckRuns(database)
    for age in (6000.0, 5000.0, 4000.0):
        assert looks.look(age) == []


def test_what_nobody_can_tell_ends_nothing_and_a_group_that_is_gone_does(database: Database) -> None:
    looks = CheckRuns(database)
    looks.look(5000.0)
    assert looks.look(5060.0) == ["opened retention ragtide-fast rag.traces"]
    assert looks.look(None) == []
    assert looks.look() == ["resolved retention ragtide-fast rag.traces"]
