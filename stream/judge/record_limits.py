"""Limits the records of an hour that an evaluator's calls may be sent about, for each application in this process."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ragtide.evaluators.judge.calls import THROTTLED, Asker
from ragtide.stream.judge.limits import LeftOut

HOUR_S = 3_600
_AT_ONCE = 1 / 6  # of the records of an hour
_MOST_REMEMBERED = 10_000  # ids of traces


@dataclass(slots=True)
class _Room:
    """Records that may begin. Never more than `per_hour` in an hour: what may begin at once comes back more slowly."""

    per_hour: int
    room: float
    at_s: float
    admitted: dict[str, None] = field(default_factory=dict)  # ids of the newest traces, the oldest first

    def take(self, now_s: float) -> bool:
        """Take room for a record, if there is some."""
        most = _most_at_once(self.per_hour)
        refilled = (now_s - self.at_s) * (self.per_hour + 1 - most) / HOUR_S
        self.room, self.at_s = min(most, self.room + refilled), now_s
        if self.room < 1:
            return False
        self.room -= 1
        return True

    def remember(self, trace_id: str) -> None:
        """Keep the id of a trace that was admitted."""
        self.admitted[trace_id] = None
        if len(self.admitted) > _MOST_REMEMBERED:
            del self.admitted[next(iter(self.admitted))]


class RecordLimits:
    """The limits of all evaluators and applications. Used by one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rooms: dict[tuple[str, str], _Room] = {}

    @contextmanager
    def admitted(self, asker: Asker) -> Iterator[None]:
        """Admit a call, which is sent within. If another limit leaves out the first, give back the record's room."""
        is_first = self.admit(asker)
        try:
            yield
        except LeftOut:
            if is_first:
                self._give_back(asker)
            raise

    def admit(self, asker: Asker) -> bool:
        """Let a call about a record pass, and return whether the record took room for it.

        Raises `LeftOut` if it is the first one and there is no room for the record.
        Later calls about it always pass: the earlier ones are paid for. So do calls about a trace that was
        admitted before and comes again, as with labels: else "throttled" would replace its score.
        """
        per_hour, trace = asker.records_per_hour, asker.trace
        if per_hour is None or asker.evaluator in trace.admitted_of:
            return False
        key, now_s = (asker.evaluator, trace.app), self._clock()
        room = self._rooms.setdefault(key, _Room(per_hour, _most_at_once(per_hour), now_s))
        is_known = trace.trace_id in room.admitted
        if not is_known:
            if not room.take(now_s):
                raise LeftOut(THROTTLED)
            if trace.trace_id:
                room.remember(trace.trace_id)
        trace.admitted_of.add(asker.evaluator)
        return not is_known

    def _give_back(self, asker: Asker) -> None:
        room = self._rooms[asker.evaluator, asker.trace.app]
        room.room += 1
        room.admitted.pop(asker.trace.trace_id, None)
        asker.trace.admitted_of.discard(asker.evaluator)


def _most_at_once(per_hour: int) -> float:
    return max(1.0, per_hour * _AT_ONCE)
