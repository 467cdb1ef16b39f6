"""Hours of the week in which changes begin again and again are proposed as known events."""

import random
import tomllib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ragtide.drift.detection_settings import KnownEvent
from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.model import Insight
from ragtide.drift.insights.recurring_changes import SLOTS, WEEKS, Hours, recurring_changes, recurring_hours
from ragtide.drift.problems.model import EventRow
from ragtide.drift.settings import DriftSettings, JobSettings, WindowSettings
from ragtide.drift.stats import WEEKDAYS
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS

NOW = datetime(2026, 11, 6, 12, tzinfo=UTC)  # a Friday; clocks in Berlin changed on 25 October
MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
FRIDAY, EVERY_DAY, WORKING_DAYS = 4, tuple(range(7)), tuple(range(5))


def store(
    database: Database,
    begins: Iterable[datetime],
    kind: str = "change_point",
    app: str = "shop",
    lengths: Sequence[timedelta] = (),
) -> None:
    """A problem of each begin, seen ten minutes later; the first ones end after these lengths."""
    rows = []
    for number, begin in enumerate(begins):
        where = (app, "prod", "", "level", "operations.latency_s", "", "", kind)
        opened = (f"p{number}", f"e{number}", "opened", 1, begin + timedelta(minutes=10), *where)
        rows.append(EventRow(*opened, attributes=f'{{"since": "{begin.isoformat()}"}}'))
        if number < len(lengths):
            end = begin + lengths[number]
            resolved = (f"p{number}", f"r{number}", "resolved", 1, end + timedelta(minutes=20), *where)
            rows.append(EventRow(*resolved, attributes=f'{{"until": "{end.isoformat()}"}}'))
    database.insert("problem_events", rows)


def mondays(hours: float, weeks: Iterable[int] = range(4)) -> list[datetime]:
    return [MONDAY + timedelta(weeks=-week, hours=hours) for week in weeks]


def found(database: Database, now: datetime = NOW, **settings: object) -> list[Insight]:
    drift = DriftSettings.model_validate(settings)
    return list(recurring_changes(PeriodData(database, EVALUATORS, WindowSettings(), JobSettings(), now, drift)))


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
def test_onsets_around_a_full_hour_are_one_hour(database: Database) -> None:
    minutes = (57, 62, 58, 64)
    store(database, [at + timedelta(minutes=more) for at, more in zip(mondays(2), minutes, strict=True)])
    [one] = found(database)
    assert 'start = "02:30", end = "03:30"' in one.actions[0]


@pytest.mark.clickhouse
def test_the_entry_ends_when_the_changes_typically_end(database: Database) -> None:
    store(database, mondays(3.25), lengths=[timedelta(hours=length) for length in (2.5, 2.6, 40)])
    [one] = found(database)
    assert one.message.startswith("changes began on Mondays between 03:00 and 04:00 (UTC) in 4 of the last 5 weeks and")
    assert "and lasted until 06:00: " in one.message
    assert 'start = "03:00", end = "06:00"' in one.actions[0]


@pytest.mark.clickhouse
def test_changes_that_last_for_days_are_a_day(database: Database) -> None:
    store(database, mondays(3), lengths=[timedelta(hours=60)] * 4)
    [one] = found(database)
    assert "and lasted a day: " in one.message
    assert 'start = "03:00", end = "03:00"' in one.actions[0]


@pytest.mark.clickhouse
def test_the_entry_is_toml_whatever_the_name(database: Database) -> None:
    store(database, mondays(3), app='bob\'s "bot"')
    [one] = found(database)
    entry = one.actions[0].partition("with ")[2].partition(". change_point")[0]
    event = KnownEvent.model_validate(tomllib.loads("event = { " + entry + " }")["event"])
    assert (event.app, event.days) == ('bob\'s "bot"', ("monday",))


@pytest.mark.clickhouse
def test_what_is_accepted_is_not_proposed_again(database: Database) -> None:
    store(database, mondays(3))
    assert len(found(database)) == 1
    accepted = {"name": "load", "app": "shop", "days": ["monday"], "start": "03:00", "end": "04:00"}
    assert found(database, calendar=[accepted]) == []
    assert found(database, calendar=[accepted | {"since": "2026-11-06T00:00"}]) == []
    assert len(found(database, calendar=[accepted | {"app": "other"}])) == 1
    assert len(found(database, calendar=[accepted | {"until": "2026-11-10T00:00"}])) == 1, "it is over soon"


@pytest.mark.clickhouse
def test_what_happens_once_withdraws_nothing(database: Database) -> None:
    store(database, mondays(3))
    assert len(found(database, dates=["2026-11-02", "2026-11-09"])) == 1
    once = {"name": "migration", "since": "2026-11-09T00:00", "until": "2026-11-10T00:00"}
    assert len(found(database, calendar=[once])) == 1


@pytest.mark.clickhouse
def test_what_is_accepted_stays_so_when_clocks_leave_out_its_hour(database: Database) -> None:
    zone, now = ZoneInfo("Europe/Berlin"), datetime(2026, 3, 26, 12, tzinfo=UTC)  # on the 29th 02:00 is 03:00
    sunday = datetime(2026, 3, 22, 2, 10, tzinfo=zone)
    store(database, [sunday - timedelta(weeks=week) for week in range(4)])
    accepted = {"name": "load", "days": ["sunday"], "start": "02:00", "end": "03:00"}
    assert len(found(database, now, time_zone="Europe/Berlin")) == 1
    assert found(database, now, time_zone="Europe/Berlin", calendar=[accepted]) == []


@pytest.mark.clickhouse
def test_weeks_are_those_of_days_not_of_the_running_hour(database: Database) -> None:
    store(database, [NOW + timedelta(weeks=-week, minutes=20) for week in (1, 2, 3, 4, 5)])
    [one] = found(database)
    assert "in 4 of the last 5 weeks" in one.message
    assert one.figures["changes"] == 4


@pytest.mark.clickhouse
def test_other_kinds_of_problems_are_not_read(database: Database) -> None:
    store(database, mondays(3), kind="threshold")
    assert found(database) == []


def days_ago(weekdays: Iterable[int]) -> list[int]:
    """The last five weeks' days of these weekdays, on a Friday."""
    return [ago for ago in range(WEEKS * WEEKDAYS) if (FRIDAY - ago) % WEEKDAYS in set(weekdays)]


@pytest.mark.parametrize("days", [EVERY_DAY, WORKING_DAYS, (5, 6), (0, 2, 4), (1,)])
def test_an_hour_of_some_days_is_found_among_others_in_working_hours(days: tuple[int, ...]) -> None:
    rng = random.Random(1)
    others = [(rng.choice(days_ago(WORKING_DAYS)), rng.randrange(18, 34)) for _ in range(10)]
    recurring = [(ago, rng.choice((6, 7))) for ago in days_ago(days)]
    assert recurring_hours([*recurring, *others], FRIDAY) == [Hours(days, 6)]


def test_an_hour_over_midnight_is_one_hour() -> None:
    changes = [(ago, 47) for ago in days_ago([6])[:2]] + [(ago, 0) for ago in days_ago([0])[2:]]
    assert recurring_hours(changes, FRIDAY) == [Hours((6,), 47)]


def test_two_weeks_are_not_enough_nor_is_what_is_over() -> None:
    mondays = days_ago([0])
    assert recurring_hours([], FRIDAY) == []
    assert recurring_hours([(ago, 6) for ago in mondays[:2]], FRIDAY) == []
    assert recurring_hours([(ago, 6) for ago in mondays[2:]], FRIDAY) == []
    assert recurring_hours([(mondays[week], 6) for week in (0, 1, 4)], FRIDAY) == [Hours((0,), 6)]


@pytest.mark.parametrize(
    ("days", "first", "until", "changes"),
    [
        *((EVERY_DAY, 0, SLOTS, changes) for changes in (5, 20, 80, 300)),
        *((WORKING_DAYS, 18, 34, changes) for changes in (5, 20, 40, 80, 300)),
        *((WORKING_DAYS, 20, 24, changes) for changes in (40, 80, 300)),
    ],
)
def test_changes_at_random_are_hardly_ever_proposed(
    days: tuple[int, ...], first: int, until: int, changes: int
) -> None:
    rng, worlds, possible = random.Random(changes), 400, days_ago(days)
    wrong = sum(
        bool(recurring_hours([(rng.choice(possible), rng.randrange(first, until)) for _ in range(changes)], FRIDAY))
        for _ in range(worlds)
    )
    assert wrong <= 0.02 * worlds
