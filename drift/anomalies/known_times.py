"""Known events and clocks of the series of a batch: what detectors leave out, and when baselines are learned anew."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragtide.drift.anomalies.queries import TickRange, WindowCells
from ragtide.drift.app_calendar import AppCalendar, calendars_of, has_calendar
from ragtide.drift.array_types import Flags, Integers
from ragtide.drift.rules import Series
from ragtide.drift.settings import DriftSettings


@dataclass(frozen=True, slots=True)
class KnownTimes:
    """The calendars of some series: `calendars` has each once, `calendar_of` [S] the place of each series' own."""

    calendars: tuple[AppCalendar, ...]
    calendar_of: Integers

    @classmethod
    def of(cls, series: Sequence[Series], settings: DriftSettings) -> "KnownTimes":
        """Return the calendars of these series; none if no application has one."""
        if not has_calendar(settings):
            return cls((), np.zeros(len(series), np.int64))
        own = calendars_of(settings, [one.app for one in series])
        every = tuple(dict.fromkeys(own))
        place = {calendar: nth for nth, calendar in enumerate(every)}
        return cls(every, np.array([place[one] for one in own], np.int64))

    def not_excluded(self, cells: WindowCells, place: Integers, ticks: TickRange) -> Flags:
        """Flag the cells, each of the series at `place`, that are in no known event."""
        if not self.calendars:
            return np.ones(len(cells), bool)
        excluded = np.stack([one.excluded(ticks.ticks, ticks.tick_s) for one in self.calendars])
        found: Flags = ~excluded[self.calendar_of[place], _tick_of(cells, ticks)]
        return found

    def shifts(self, cells: WindowCells, place: Integers, ticks: TickRange, at: int) -> Integers:
        """Return the seconds by which each cell is later by the clock of `at`: noon stays noon across a change."""
        if not self.calendars:
            return np.zeros(len(cells), np.int64)
        shifts = np.stack([one.shifts(ticks.ticks, at) for one in self.calendars])
        found: Integers = shifts[self.calendar_of[place], _tick_of(cells, ticks)]
        return found

    def moved(self, place: int, time: int, at: int) -> int:
        """Return a time of the series at `place` by the clock of `at`, as `shifts` moves its cells."""
        if not self.calendars:
            return time
        calendar = self.calendars[self.calendar_of[place]]
        moved: int = time + calendar.offset(time) - calendar.offset(at)
        return moved

    def clock_changes(self, since: int, until: int) -> list[int]:
        """Return when any of the clocks changes in (since, until)."""
        return sorted({at for one in self.calendars for at in one.clock_changes(since, until)})


def _tick_of(cells: WindowCells, ticks: TickRange) -> Integers:
    found: Integers = (cells["at"].astype(np.int64) - ticks.first) // ticks.tick_s
    return found
