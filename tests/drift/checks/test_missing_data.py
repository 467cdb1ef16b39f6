"""An app that used to send traces has stopped."""

from datetime import UTC, datetime, timedelta

import pytest

from ragtide.drift.checks.missing_data import ActiveHours, ActivityProfile, typical_pause
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS, QUALITY, World, made, score_row, trace_row

RULES = RuleSettings(missing_after_s=300, flap_s=0)
OFTEN = JobSettings(reconcile_every_s=0.001)
OPERATIONS = made("operations", [*QUALITY.metrics])


MONDAY = int(datetime(2026, 9, 7, tzinfo=UTC).timestamp())
DAY, HOUR = 86400, 3600


def office(days: range, first: int = 8, end: int = 18) -> list[int]:
    """Hours in which an app sends that rests at night and on weekends; days from a Monday on."""
    monday = MONDAY // HOUR
    return [monday + 24 * day + hour for day in days if day % 7 < 5 for hour in range(first, end)]


def at(day: int, hour: float) -> float:
    return MONDAY + DAY * day + HOUR * hour


def test_nights_and_weekends_are_no_silence() -> None:
    hours = ActiveHours.of(office(range(12)))
    assert hours.seconds(at(11, 18), at(14, 9)) == 0  # Friday evening to Monday at nine
    assert hours.seconds(at(11, 18), at(14, 9.5)) == 1800
    # The first and the last hour of a day's work shift: what counts are those between.
    assert hours.seconds(at(10, 0), at(11, 0)) == 8 * HOUR
    assert ActiveHours.of(office(range(2))).seconds(at(1, 18), at(2, 9.5)) == 1800, "one night was seen"
    assert ActiveHours.of(office(range(1))).seconds(at(0, 18), at(1, 8)) == 0, "nobody knows the nights yet"


def test_a_day_off_is_no_habit_and_an_hour_that_is_seldom_used_does_not_count() -> None:
    with_a_holiday = [hour for hour in office(range(12)) if hour // 24 != MONDAY // DAY + 2]
    assert ActiveHours.of(with_a_holiday).seconds(at(11, 9), at(11, 10)) == HOUR
    late = [MONDAY // HOUR + 24 * day + 18 for day in (0, 1, 3)]  # in 3 of 10 days an hour longer
    assert ActiveHours.of(sorted(office(range(12)) + late)).seconds(at(11, 18), at(11, 24)) == 0


def test_one_that_sends_seldom_is_known_by_its_days() -> None:
    seldom = [MONDAY // HOUR + 24 * day + hour for day in range(5) for hour in (3 * day % 24, (7 * day + 11) % 24)]
    hours = ActiveHours.of(sorted(set(seldom)))
    assert hours.width == 24
    assert hours.seconds(at(4, 12), at(4, 14)) == 2 * HOUR


def test_a_habit_is_broken_after_twice_its_pause() -> None:
    always = ActiveHours.of([MONDAY // HOUR + hour for hour in range(240)])
    steady = ActivityProfile("shop", "", int(at(10, 0)), 100, windows=4, hours=always, pause_s=0)
    assert not steady.is_overdue(at(10, 0) + 899, 900)
    assert steady.is_overdue(at(10, 0) + 900, 900)
    slow = ActivityProfile("shop", "", int(at(10, 0)), 100, windows=3, hours=always, pause_s=5000)
    assert not slow.is_overdue(at(10, 0) + 9_999, 900)
    assert slow.is_overdue(at(10, 0) + 10_000, 900)
    assert not ActivityProfile("shop", "", int(at(10, 0)), 2, windows=2, hours=always, pause_s=0).is_overdue(
        at(12, 0), 900
    )


def test_a_pause_that_stood_out_is_no_habit() -> None:
    hours = ActiveHours.of(office(range(12)))
    nights = [(at(day, 18), at(day + 1, 8)) for day in range(4)]
    assert typical_pause(hours, nights) == 0
    assert typical_pause(hours, [*nights, (at(2, 10), at(2, 12))]) == 0
    assert typical_pause(hours, [*nights, (at(2, 10), at(2, 12)), (at(3, 10), at(3, 11))]) == HOUR
    assert typical_pause(hours, []) == 0


@pytest.mark.clickhouse
def test_an_evening_is_no_silence_and_a_morning_without_traces_is(database: Database) -> None:
    world = World(database, rules=RuleSettings(), settings=OFTEN, windows=WindowSettings(base_s=600))
    friday = (datetime.now(UTC) - timedelta(days=7)).replace(hour=0, minute=0, second=0, microsecond=0)
    friday -= timedelta(days=(friday.weekday() - 4) % 7)
    world.start = friday - timedelta(days=1)
    rows = [
        score_row(world.start + timedelta(days=day, seconds=second), f"t{day}-{second}", {"good": 0.9})
        for day in (0, 1)
        for second in range(8 * HOUR, 18 * HOUR, 600)
    ]
    world.store(rows)

    def look(day: int, hour: float) -> list[tuple[str, str]]:
        world.advance(DAY * day + HOUR * hour)
        return [(problem.aspect, problem.state) for problem in world.problems()]

    assert look(1, 18.5) == []
    world.elect()
    assert look(4, 9.2) == []  # Monday
    assert look(4, 9.3) == [("missing", "open")]
    (problem,) = world.open()
    assert problem.attributes["since"] == (friday + timedelta(hours=18)).isoformat()
    assert "It sent 60 in the day before" in problem.description
    assert look(15, 18.2) == [("missing", "resolved")], "silent for two weeks it was given up"


@pytest.mark.clickhouse
@pytest.mark.parametrize("evaluator", ["quality", "operations"])
def test_silence_opens_once_and_ends_with_the_next_trace(database: Database, evaluator: str) -> None:
    known = EVALUATORS | {"operations": OPERATIONS}
    world = World(database, rules=RULES, settings=OFTEN, evaluators=known)
    for minute in range(4):
        world.scores(minute * 60, [0.9], evaluator=evaluator)
        world.scores(minute * 60, [0.9], evaluator=evaluator, app="other")
    world.advance(240)
    world.scores(539, [0.9], evaluator=evaluator, app="other")
    world.advance(539)
    assert world.problems() == []
    for second in (540, 541):
        world.advance(second)
        (problem,) = world.problems()
        assert (problem.app, problem.aspect, problem.kinds, problem.state) == (
            "shop",
            "missing",
            ("missing_data",),
            "open",
        )
    assert problem.attributes["since"] == world.at(240).isoformat()
    assert problem.attributes["sample_size"] == 4
    world.watch(2000)  # the worker stands still, and so does the watermark: "other" is not silent
    assert len(world.problems()) == 1
    world.scores(2000, [0.9], evaluator=evaluator)
    world.advance(2001)
    assert {(p.app, p.state) for p in world.problems()} >= {("shop", "resolved")}


@pytest.mark.clickhouse
def test_a_change_of_fingerprint_counts_no_trace_twice(database: Database) -> None:
    world = World(database, rules=RULES, settings=OFTEN)
    for minute in range(3):
        rows = [score_row(world.at(minute * 60), f"t{minute}", {"good": 0.9}, fingerprint=f) for f in ("f1", "f2")]
        rows[1] = rows[1]._replace(evaluator="checked", metrics={"passes": 1.0})
        world.store(rows)
    world.advance(600)
    (problem,) = world.problems()
    assert problem.attributes["sample_size"] == 3


@pytest.mark.clickhouse
def test_traces_that_no_evaluator_looked_at_are_no_silence(database: Database) -> None:
    world = World(database, rules=RULES, settings=OFTEN)
    for minute in range(3):
        world.scores(minute * 60, [0.9])
    database.insert("traces", [trace_row(score_row(world.at(400), "unseen"))])
    world.advance(600)
    assert world.problems() == []
    world.advance(760)
    assert world.problems() == []
