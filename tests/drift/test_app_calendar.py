"""Known events, holidays and clocks of applications."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ragtide.drift.app_calendar import AppCalendar, calendar_of, calendars_of, has_calendar
from ragtide.drift.settings import DriftSettings

HOUR, DAY = 3600, 86_400
SPRING = datetime(2026, 3, 29, 1, tzinfo=UTC)  # Berlin goes from 2:00 to 3:00
AUTUMN = datetime(2026, 10, 25, 1, tzinfo=UTC)  # and from 3:00 to 2:00
BERLIN = {"time_zone": "Europe/Berlin"}


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def calendar(app: str = "docs", **settings: object) -> AppCalendar:
    return calendar_of(DriftSettings.model_validate(settings), app)


def spans(one: AppCalendar, since: str, until: str) -> list[tuple[int, int]]:
    return [(found.start, found.end) for found in one.occurrences(at(since), at(until))]


def test_a_weekly_event_keeps_its_time_of_day_when_clocks_change() -> None:
    load = {"name": "load", "days": ["sunday"], "start": "03:30", "end": "04:30"}
    found = spans(calendar(**BERLIN, calendar=[load]), "2026-03-16", "2026-04-06")
    assert found == [
        (at("2026-03-22T02:30"), at("2026-03-22T03:30")),
        (at("2026-03-29T01:30"), at("2026-03-29T02:30")),
        (at("2026-04-05T01:30"), at("2026-04-05T02:30")),
    ]


def test_an_event_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    backup = {"name": "backup", "days": ["friday"], "start": "23:00", "end": "01:00"}
    one = calendar(calendar=[backup])
    assert spans(one, "2026-03-14T00:30", "2026-03-14T02:00") == [(at("2026-03-13T23:00"), at("2026-03-14T01:00"))]
    assert spans(one, "2026-03-14T01:00", "2026-03-20T23:00") == []


def test_an_event_may_happen_once_or_recur_within_limits() -> None:
    once = {"name": "migration", "since": "2026-12-01T20:00", "until": "2026-12-02T06:00"}
    assert spans(calendar(**BERLIN, calendar=[once]), "2026-11-01", "2027-01-01") == [
        (at("2026-12-01T19:00"), at("2026-12-02T05:00"))
    ]
    until = {"name": "old load", "start": "03:00", "end": "04:00", "until": "2026-03-03T00:00:00Z"}
    found = spans(calendar(calendar=[until]), "2026-03-01", "2026-03-09")
    assert found == [(at(f"2026-03-0{day}T03:00"), at(f"2026-03-0{day}T04:00")) for day in (1, 2)]


def test_holidays_and_dates_last_a_day_of_the_time_zone() -> None:
    one = calendar(**BERLIN, holidays=["DE-BY"], dates=[date(2026, 12, 24)])
    found = one.occurrences(at("2026-12-23"), at("2026-12-25T23:00"))
    assert [(found.start, found.end) for found in found] == [
        (at("2026-12-23T23:00"), at("2026-12-24T23:00")),
        (at("2026-12-24T23:00"), at("2026-12-25T23:00")),
    ]
    assert found[1].name not in ("", found[0].name)
    epiphany = (at("2026-01-05T23:00"), at("2026-01-06T23:00"))
    assert epiphany in spans(one, "2026-01-02", "2026-01-08")  # in Bavaria, not in all of Germany
    assert epiphany not in spans(calendar(**BERLIN, holidays=["DE"]), "2026-01-02", "2026-01-08")


def test_an_application_has_its_own_calendar_in_place_of_the_default() -> None:
    settings = DriftSettings.model_validate(
        {
            "dates": ["2026-05-01"],
            "apps": {"shop": {"dates": [], "time_zone": "Asia/Tokyo"}},
            "calendar": [{"name": "load", "app": "docs-*", "start": "03:00", "end": "04:00"}],
        }
    )
    named = {app: calendar_of(settings, app) for app in ("shop", "docs-bot", "docs-help", "other")}
    assert {app: len(one.occurrences(at("2026-04-30"), at("2026-05-03"))) for app, one in named.items()} == {
        "shop": 0, "docs-bot": 4, "docs-help": 4, "other": 1,
    }  # fmt: skip
    one, other, last = calendars_of(settings, ["docs-bot", "docs-help", "shop"])
    assert one is other
    assert one is not last
    assert has_calendar(settings)
    assert not has_calendar(DriftSettings(margin=2.0))
    assert has_calendar(DriftSettings.model_validate({"apps": {"shop": BERLIN}}))


def test_ticks_that_overlap_an_event_are_excluded() -> None:
    one = calendar(calendar=[{"name": "load", "start": "03:02", "end": "03:10"}])
    ticks = np.arange(at("2026-03-02T02:50"), at("2026-03-02T03:20"), 300)
    assert one.excluded(ticks, 300).tolist() == [False, False, True, True, False, False]
    assert one.excluded(ticks[:0], 300).tolist() == []


@pytest.mark.parametrize("change", [SPRING, AUTUMN])
def test_clock_changes_are_found_to_the_second(change: datetime) -> None:
    one, moment = calendar(**BERLIN), round(change.timestamp())
    assert one.clock_changes(moment - 3 * DAY - 7, moment + 2 * DAY) == [moment]
    assert one.clock_changes(moment - HOUR, moment) == []
    assert one.clock_changes(moment, moment + HOUR) == []
    assert calendar().clock_changes(moment - DAY, moment + DAY) == []


@given(
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"]),
    first=st.integers(at("2025-01-01") // 900, at("2027-01-01") // 900),
    days=st.integers(1, 20),
)
def test_shifted_ticks_have_the_time_of_day_that_they_had(zone: str, first: int, days: int) -> None:
    start = first * 900
    ticks = np.arange(start, start + days * DAY, 900)
    now = start + days * DAY
    one = calendar(time_zone=zone)
    moved = ticks + one.shifts(ticks, now)
    ahead = timedelta(seconds=one.offset(now))
    for before, after in zip(ticks[::37].tolist(), moved[::37].tolist(), strict=True):
        local = datetime.fromtimestamp(before, ZoneInfo(zone)).replace(tzinfo=None)
        assert local == datetime.fromtimestamp(after, UTC).replace(tzinfo=None) + ahead


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"time_zone": "Europe/Berlni"}, "there is no time zone 'Europe/Berlni'"),
        ({"time_zone": "../etc/passwd"}, "there is no time zone"),
        ({"holidays": ["XX"]}, "no holidays are known of 'XX'"),
        ({"holidays": ["DE-XX"]}, "no holidays are known of 'DE-XX'"),
        ({"calendar": [{"name": "load", "start": "03:00"}]}, "only one of start and end"),
        ({"calendar": [{"name": "load"}]}, "needs start and end (it recurs), or since and until (once)"),
        ({"calendar": [{"name": "x", "start": "03:00Z", "end": "04:00Z"}]}, "start and end have no time zone"),
        (
            {"calendar": [{"name": "x", "since": "2026-01-02T00:00", "until": "2026-01-02T00:00"}]},
            "ends before it begins",
        ),
        ({"calendar": [{"name": "x", "days": ["funday"], "start": "03:00", "end": "04:00"}]}, "monday"),
    ],
)
def test_what_is_no_calendar_is_said(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        DriftSettings.model_validate(settings)
    assert problem in str(caught.value)


def test_an_event_of_all_day_lasts_from_midnight_to_midnight() -> None:
    whole = {"name": "sale", "start": time(0), "end": time(0)}
    assert spans(calendar(calendar=[whole]), "2026-03-02T10:00", "2026-03-02T11:00") == [
        (at("2026-03-02"), at("2026-03-03"))
    ]
