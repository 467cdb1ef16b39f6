"""Hours of the week in which changes begin again and again are proposed as known events."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.model import Insight
from ragtide.drift.insights.recurring_changes import WEEKS, Hours, recurring_changes, recurring_hours
from ragtide.drift.problems.model import EventRow
from ragtide.drift.settings import DriftSettings, JobSettings, WindowSettings
from ragtide.drift.stats import HOURS, WEEKDAYS
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS

NOW = datetime(2026, 11, 6, 12, tzinfo=UTC)  # a Friday; clocks in Berlin changed on 25 October
MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def store(database: Database, begins: Iterable[datetime], kind: str = "change_point") -> None:
    """A problem of each begin, seen ten minutes later."""
    rows = [
        EventRow(
            *(f"p{number}", f"e{number}", "opened", 1, begin + timedelta(minutes=10), "shop", "prod", "", "level"),
            *("operations.latency_s", "", "", kind),
            attributes=f'{{"since": "{begin.isoformat()}"}}',
        )
        for number, begin in enumerate(begins)
    ]
    database.insert("problem_events", rows)


def found(database: Database, **settings: object) -> list[Insight]:
    drift = DriftSettings.model_validate(settings)
    return list(recurring_changes(PeriodData(database, EVALUATORS, WindowSettings(), JobSettings(), NOW, drift)))


@pytest.mark.clickhouse
def test_an_hour_of_every_week_is_proposed_by_the_clock_of_the_application(database: Database) -> None:
    zone = ZoneInfo("Europe/Berlin")
    nightly = [MONDAY.replace(tzinfo=zone) + timedelta(weeks=-week, hours=3, minutes=20) for week in range(4)]
    store(database, [*nightly, NOW - timedelta(days=2)])
    [one] = found(database, time_zone="Europe/Berlin")
    assert one.where == ("shop", "")
    assert one.message.startswith(
        "changes began on Mondays between 03:00 and 04:00 (Europe/Berlin) in 4 of the last 5 weeks: "
        "operations.latency_s."
    )
    assert 'app = "shop", days = ["monday"], start = "03:00", end = "04:00"' in one.actions[0]


@pytest.mark.clickhouse
def test_what_is_accepted_is_not_proposed_again(database: Database) -> None:
    store(database, [MONDAY + timedelta(weeks=-week, hours=3) for week in range(4)])
    assert len(found(database)) == 1
    accepted = {"name": "load", "app": "shop", "days": ["monday"], "start": "03:00", "end": "04:00"}
    assert found(database, calendar=[accepted]) == []
    assert len(found(database, calendar=[accepted | {"app": "other"}])) == 1


@pytest.mark.clickhouse
def test_other_kinds_of_problems_are_not_read(database: Database) -> None:
    store(database, [MONDAY + timedelta(weeks=-week, hours=3) for week in range(4)], kind="threshold")
    assert found(database) == []


def test_hours_that_follow_one_another_and_days_are_joined() -> None:
    weekdays = range(5)
    changes = [(week, day, hour) for week in range(5) for day in weekdays for hour in (22, 23)]
    assert recurring_hours(changes) == [Hours((0, 1, 2, 3, 4), 22, 0)]


def test_two_weeks_are_not_enough_nor_is_what_is_over() -> None:
    assert recurring_hours([(0, 1, 3), (1, 1, 3)]) == []
    assert recurring_hours([(2, 1, 3), (3, 1, 3), (4, 1, 3)]) == []
    assert recurring_hours([(0, 1, 3), (1, 1, 3), (4, 1, 3)]) == [Hours((1,), 3, 4)]


@pytest.mark.parametrize("changes", [5, 20, 80, 300])
def test_changes_at_random_are_hardly_ever_proposed(changes: int) -> None:
    rng = random.Random(changes)
    worlds = 400
    wrong = sum(
        bool(
            recurring_hours(
                [(rng.randrange(WEEKS), rng.randrange(WEEKDAYS), rng.randrange(HOURS)) for _ in range(changes)]
            )
        )
        for _ in range(worlds)
    )
    assert wrong <= 0.02 * worlds
