"""The calendar of an application: its known events and holidays, and its clock.

Times are seconds since 1970, UTC. Days and times of day are those of the application's time zone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from ragtide.drift.array_types import Flags, Integers
from ragtide.drift.detection_settings import WEEKDAYS, AppCalendarSettings, KnownEvent
from ragtide.drift.routes import expression
from ragtide.drift.settings import DriftSettings
from ragtide.drift.stats import DAY_S

_DAY = timedelta(days=1)
_LONGEST_OFFSET = timedelta(days=2)  # of a day's begin from that day's begin in UTC, with an event over midnight


class Occurrence(NamedTuple):
    """A known event or a holiday in [start, end)."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class AppCalendar:
    """The calendar of one application."""

    settings: AppCalendarSettings
    events: tuple[KnownEvent, ...]

    @property
    def zone(self) -> ZoneInfo:
        """The application's time zone."""
        return ZoneInfo(self.settings.time_zone)

    def occurrences(self, since: int, until: int) -> list[Occurrence]:
        """Return what overlaps [since, until), by its start."""
        found = [
            *self._holidays(since, until),
            *(one for event in self.events for one in self._of(event, since, until)),
        ]
        return sorted(one for one in found if one.start < until and one.end > since)

    def excluded(self, ticks: Integers, tick_s: int) -> Flags:
        """Flag the ticks that overlap a known event or a holiday."""
        flags = np.zeros(len(ticks), bool)
        if len(ticks):
            for one in self.occurrences(int(ticks[0]), int(ticks[-1]) + tick_s):
                flags |= (ticks < one.end) & (ticks + tick_s > one.start)
        return flags

    def offset(self, at: int) -> int:
        """Return the seconds by which the clock is ahead of UTC."""
        ahead = datetime.fromtimestamp(at, self.zone).utcoffset()
        return 0 if ahead is None else round(ahead.total_seconds())

    def shifts(self, ticks: Integers, at: int) -> Integers:
        """Return by how many seconds each tick is later by the clock of `at` than by its own: 0 but across a change."""
        shifts = np.zeros(len(ticks), np.int64)
        if len(ticks):
            now = self.offset(at)
            borders = self.clock_changes(int(ticks[0]), int(ticks[-1]) + 1)
            for first, last in zip([int(ticks[0]), *borders], [*borders, int(ticks[-1]) + 1], strict=True):
                shifts[(ticks >= first) & (ticks < last)] = self.offset(first) - now
        return shifts

    def clock_changes(self, since: int, until: int) -> list[int]:
        """Return when the clock changes in (since, until)."""
        found = []
        for first in range(since, until, DAY_S):
            last = min(first + DAY_S, until)
            if self.offset(first) != self.offset(last):
                low = first
                while last - low > 1:
                    middle = (low + last) // 2
                    low, last = (middle, last) if self.offset(middle) == self.offset(first) else (low, middle)
                found.append(last)
        return [at for at in found if since < at < until]

    def _holidays(self, since: int, until: int) -> Iterator[Occurrence]:
        for day in self._days(since, until):
            name = "day without change detection" if day in self.settings.dates else self._holiday(day)
            if name:
                yield Occurrence(self._at(day, time.min), self._at(day + _DAY, time.min), name)

    def _holiday(self, day: date) -> str:
        names = (_holidays_of(country).get(day) for country in self.settings.holidays)
        return next((name for name in names if name), "")

    def _of(self, event: KnownEvent, since: int, until: int) -> Iterator[Occurrence]:
        first = self._instant(event.since) if event.since else None
        last = self._instant(event.until) if event.until else None
        if event.start is None or event.end is None:
            if first is not None and last is not None:
                yield Occurrence(first, last, event.name)
            return
        for day in self._days(since, until):
            if event.days and WEEKDAYS[day.weekday()] not in event.days:
                continue
            start = self._at(day, event.start)
            end = self._at(day if event.end > event.start else day + _DAY, event.end)
            if (first is None or start >= first) and (last is None or end <= last):
                yield Occurrence(start, end, event.name)

    def _days(self, since: int, until: int) -> Iterator[date]:
        """Yield the days of which something may overlap [since, until)."""
        first, last = (datetime.fromtimestamp(at, UTC).date() for at in (since, until))
        day = first - _LONGEST_OFFSET
        while day <= last + _LONGEST_OFFSET:
            yield day
            day += _DAY

    def _at(self, day: date, clock: time) -> int:
        return round(datetime.combine(day, clock, self.zone).timestamp())

    def _instant(self, at: datetime) -> int:
        return round((at if at.tzinfo else at.replace(tzinfo=self.zone)).timestamp())


def calendar_of(settings: DriftSettings, app: str) -> AppCalendar:
    """Return the calendar of an application."""
    own = settings.of(app)
    events = tuple(event for event in settings.calendar if re.fullmatch(expression(event.app), app))
    fields = {name: getattr(own, name) for name in AppCalendarSettings.model_fields}
    return AppCalendar(AppCalendarSettings.model_construct(**fields), events)


def calendars_of(settings: DriftSettings, apps: Sequence[str]) -> list[AppCalendar]:
    """Return the calendar of each application; equal ones are one object."""
    by_app = {app: calendar_of(settings, app) for app in set(apps)}
    shared: dict[AppCalendar, AppCalendar] = {}
    return [shared.setdefault(by_app[app], by_app[app]) for app in apps]


def has_calendar(settings: DriftSettings) -> bool:
    """Whether any application has a calendar but that of UTC without known events."""
    usual = AppCalendarSettings()
    every = [settings, *settings.apps.values()]
    return bool(settings.calendar) or any(
        getattr(one, name) != getattr(usual, name) for one in every for name in AppCalendarSettings.model_fields
    )


@lru_cache(maxsize=64)
def _holidays_of(country: str) -> dict[date, str]:
    import holidays

    name, _, region = country.partition("-")
    found: dict[date, str] = holidays.country_holidays(name, subdiv=region or None)
    return found
