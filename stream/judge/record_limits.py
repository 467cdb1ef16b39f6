"""Limits the records of an hour that an evaluator's calls may be sent about, for each application in this process."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from ragtide.evaluators.judge.calls import THROTTLED, Asker
from ragtide.stream.judge.limits import LeftOut

HOUR_S = 3_600
_AT_ONCE = 1 / 6  # of the records of an hour


@dataclass(slots=True)
class _Room:
    """Records that may begin. Never more than `per_hour` in an hour: what may begin at once comes back more slowly."""

    per_hour: int
    room: float
    at_s: float

    def take(self, now_s: float) -> bool:
        """Take room for a record, if there is some."""
        most = _most_at_once(self.per_hour)
        refilled = (now_s - self.at_s) * (self.per_hour + 1 - most) / HOUR_S
        self.room, self.at_s = min(most, self.room + refilled), now_s
        if self.room < 1:
            return False
        self.room -= 1
        return True


class RecordLimits:
    """The limits of all evaluators and applications. Used by one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rooms: dict[tuple[str, str], _Room] = {}

    def admit(self, asker: Asker) -> None:
        """Let a call about a record pass. Raises `LeftOut` if it is the first one and there is no room for the record.

        Later calls about the record always pass: the earlier ones are paid for.
        """
        per_hour, trace = asker.records_per_hour, asker.trace
        if per_hour is None or asker.evaluator in trace.admitted_of:
            return
        key, now_s = (asker.evaluator, trace.app), self._clock()
        room = self._rooms.setdefault(key, _Room(per_hour, _most_at_once(per_hour), now_s))
        if not room.take(now_s):
            raise LeftOut(THROTTLED)
        trace.admitted_of.add(asker.evaluator)


def _most_at_once(per_hour: int) -> float:
    return max(1.0, per_hour * _AT_ONCE)
