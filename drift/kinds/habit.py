"""When an application usually sends: by hours of weekdays and of weekends, and how long it pauses within them. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

HOUR_S = 3600
_THURSDAY = 3  # 1 January 1970, days of the week from 0
_WEEKEND = (5, 6)
_USUAL = 0.75  # of the days in which it was known
_MOST = 0.5  # of the hours in which it sent
_WIDTHS = (1, 4, 24)  # hours that are looked at together, more where it sends seldom
_BUSY_WINDOWS = 3  # with fewer windows of traffic there is no habit to break
_PATIENCE = 2  # times the pause that it makes


class _Slot(NamedTuple):
    weekend: bool
    part: int  # of the day, UTC


@dataclass(frozen=True, slots=True)
class Hours:
    """In which parts of a day it sends, from the first to the last hour in which it did; `width` hours are a part.

    An hour counts where it sent in three of four such parts, and neither the hour before nor the one after is known to
    be of another kind: the end of a day's work shifts, and clocks do in spring.
    """

    width: int
    sent: frozenset[_Slot]
    known: frozenset[_Slot]

    @classmethod
    def of(cls, hours: Sequence[int]) -> "Hours":
        """From the hours in which it sent, since 1970; at least one. By the least width that most of them fit."""
        for width in _WIDTHS:
            found = cls._by(width, hours)
            if sum(_slot(hour, width) in found.sent for hour in hours) > _MOST * len(hours):
                break
        return found

    @classmethod
    def _by(cls, width: int, hours: Sequence[int]) -> "Hours":
        parts = {hour // width * width for hour in hours}
        sent = Counter(_slot(part, width) for part in parts)
        known = Counter(_slot(part, width) for part in range(min(parts), max(parts) + 1, width))
        usual = frozenset(slot for slot, count in sent.items() if count >= _USUAL * known[slot])
        return cls(width, usual, frozenset(known))

    def seconds(self, since: float, until: float) -> float:
        """Of [since, until), seconds since 1970, how many lie in hours that count."""
        first, last = int(since // HOUR_S), int(until // HOUR_S)
        return sum(
            min(until, (hour + 1) * HOUR_S) - max(since, hour * HOUR_S)
            for hour in range(first, last + 1)
            if self._counts(hour)
        )

    def _counts(self, hour: int) -> bool:
        own, *beside = (_slot(one, self.width) for one in (hour, hour - 1, hour + 1))
        return own in self.sent and all(slot in self.sent or slot not in self.known for slot in beside)


@dataclass(frozen=True, slots=True)
class Habit:
    """How an app sent before it fell silent; `since` is the end of its last window with traffic, seconds since 1970.

    `traces` came in the day before, in so many `windows` altogether.
    """

    app: str
    environment: str
    since: int
    traces: int
    windows: int
    hours: Hours
    pause_s: float

    def is_broken(self, until: float, after_s: float) -> bool:
        """Nothing came for long in hours in which it sends, and for much longer than its pauses there."""
        if self.windows < _BUSY_WINDOWS:
            return False
        return self.hours.seconds(self.since, until) >= max(after_s, _PATIENCE * self.pause_s)


def pause_of(hours: Hours, pauses: Iterable[tuple[float, float]]) -> float:
    """The second longest in hours that count, 0 where there are not two: one that stood out was no habit."""
    return next(iter(sorted((hours.seconds(*pause) for pause in pauses), reverse=True)[1:2]), 0.0)


def _slot(hour: int, width: int) -> _Slot:
    day, of_day = divmod(hour, 24)
    return _Slot((day + _THURSDAY) % 7 in _WEEKEND, of_day // width)
