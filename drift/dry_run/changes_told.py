"""What tellers of changes would have told, tick by tick and day by day; problems stay in memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from drift.dry_run.looks import Looks
from drift.dry_run.would_be import WouldBe
from drift.problems.events import Place
from drift.problems.troubles import Trouble
from drift.watching.daily import Drifted
from drift.watching.daily_told import KIND, DailyTeller
from drift.watching.look import Looked
from drift.watching.seen import Alarm, Seen
from drift.watching.telling import KINDS, Teller


@dataclass(slots=True)
class Alarms:
    """Hears of ticks in order of time."""

    teller: Teller
    _looks: dict[Place, Looks[tuple[Seen, Alarm]]] = field(default_factory=dict)

    def hear(self, looked: Looked, at: int) -> None:
        """Of the series in alarm at the end of a tick, seconds since 1970, and of those that others are believed by."""
        known = {
            kind: {place for place, one in self._looks.items() if one.kind == kind and one.stands} for kind in KINDS
        }
        found = self.teller.alarms(looked, known)
        for place, alarm in found.items():
            own = self.teller.rules.of(place.app)
            self._looks.setdefault(place, Looks(place, self.teller.kind_at(place), own)).sees(at, alarm)
        for place in self._looks.keys() - found.keys():
            self._looks[place].sees_none(at)

    def would_be(self) -> Iterator[WouldBe]:
        """All that would have been told."""
        for one in self._looks.values():
            yield from one.would_be(lambda alarm: self.teller.trouble(*alarm))


@dataclass(slots=True)
class Days:
    """Hears of looks in order of time; days that were over before the first one are not told."""

    _looks: dict[Place, Looks[tuple[Drifted, int]]] = field(default_factory=dict)
    _told: int | None = None

    def hear(self, teller: DailyTeller, looked: Looked, at: int) -> None:
        """Of a look that was at that time."""
        day = teller.last_day(looked)
        if self._told is None or day <= self._told:
            for one in self._looks.values():
                one.waits(at)
        else:
            self._compare(teller, looked, day, at)
        self._told = max(day, self._told or day)

    def _compare(self, teller: DailyTeller, looked: Looked, day: int, at: int) -> None:
        found = teller.daily.compared(looked.seen, day)
        unlike = teller.unlike(found)
        for place, one in unlike.items():
            own = teller.rules.of(place.app)
            self._looks.setdefault(place, Looks(place, KIND, own)).sees(at, (one, day))
        for place in self._looks.keys() - unlike.keys():
            if teller.is_over(place, looked, found):
                self._looks[place].sees_none(at)
            else:
                self._looks[place].waits(at)

    def would_be(self, teller: DailyTeller) -> Iterator[WouldBe]:
        """All that would have been told, in this one's words."""
        for place, one in self._looks.items():
            yield from one.would_be(partial(_told, teller, place))


def _told(teller: DailyTeller, place: Place, evidence: tuple[Drifted, int]) -> Trouble:
    return teller.trouble(place, *evidence)
