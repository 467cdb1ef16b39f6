"""How fast a roll-up goes: windows at once, and applications and windows that wait because their statements failed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift.windows.scope import WindowKey

MAX_WINDOWS = 1000  # whose marks are taken back together
_FIRST_WAIT = timedelta(seconds=60)
_MAX_WAIT = timedelta(seconds=600)


class Application(NamedTuple):
    """Whose windows wait together."""

    app: str
    environment: str


class FailureState(NamedTuple):
    """What failed last, how often in a row, since when, and until when it waits."""

    since: datetime
    until: datetime
    attempts: int
    reason: str


@dataclass(slots=True)
class RollupBackoff:
    """Remembered for one leader's term; a new leader tries everything at once.

    A window that fails alone waits, twice as long after each failure. Its application waits too, until one of its
    windows works, so that an application that always fails costs one attempt per wait.
    """

    batch_size: int = MAX_WINDOWS
    succeeded: set[Application] = field(default_factory=set)  # in this term
    _windows: dict[WindowKey, FailureState] = field(default_factory=dict)
    _applications: dict[Application, FailureState] = field(default_factory=dict)

    def next_batch(self, todo: Sequence[WindowKey]) -> list[WindowKey]:
        """The windows to work on next: one that failed before, or whose application did, is tried alone."""
        if self._is_suspect(todo[0]):
            return [todo[0]]
        end = next((i for i, window in enumerate(todo[: self.batch_size]) if self._is_suspect(window)), self.batch_size)
        return list(todo[:end])

    def in_order(self, windows: Iterable[WindowKey], now: datetime) -> list[WindowKey]:
        """Those that do not wait, the oldest first; windows that failed before come last."""
        ready = [one for one in windows if not self._waits(one, now)]
        return sorted(ready, key=lambda one: (one in self._windows, self._is_suspect(one), one.start, one))

    def waiting(self, now: datetime) -> list[Application]:
        """Applications none of whose windows may be tried yet."""
        return [application for application, failing in self._applications.items() if now < failing.until]

    def record_success(self, portion: Sequence[WindowKey]) -> None:
        """The portion is stored: the next one may be half as large again."""
        if len(portion) >= self.batch_size:
            self.batch_size = min(MAX_WINDOWS, self.batch_size + self.batch_size // 2 + 1)
        for window in portion:
            self._windows.pop(window, None)
            self._applications.pop(_application(window), None)
            self.succeeded.add(_application(window))

    def halve(self, portion: Sequence[WindowKey]) -> None:
        """The portion was too much."""
        self.batch_size = max(1, len(portion) // 2)

    def record_failure(self, window: WindowKey, reason: str, now: datetime) -> None:
        """The window failed alone: it waits, and its application with it."""
        application = _application(window)
        self._windows[window] = _next_failure(self._windows.get(window), reason, now)
        self._applications[application] = _next_failure(self._applications.get(application), reason, now)

    def forget(self, marked: Iterable[WindowKey], now: datetime) -> None:
        """Windows that are no longer marked, and whose application does not wait, need no further attempt."""
        still = {*marked}
        for window in [one for one in self._windows if one not in still]:
            if not self._application_waits(window, now):
                del self._windows[window]
                self.succeeded.add(_application(window))

    def failing(self) -> Mapping[Application, FailureState]:
        """Applications with windows that failed, each by its window that failed most often."""
        found: dict[Application, FailureState] = {}
        for window, failing in sorted(self._windows.copy().items(), key=lambda one: one[1].attempts):
            found[_application(window)] = failing
        return found

    def _is_suspect(self, window: WindowKey) -> bool:
        return window in self._windows or _application(window) in self._applications

    def _waits(self, window: WindowKey, now: datetime) -> bool:
        own = self._windows.get(window)
        return self._application_waits(window, now) or (own is not None and now < own.until)

    def _application_waits(self, window: WindowKey, now: datetime) -> bool:
        application = self._applications.get(_application(window))
        return application is not None and now < application.until


def _application(window: WindowKey) -> Application:
    return Application(window.app, window.environment)


def _next_failure(before: FailureState | None, reason: str, now: datetime) -> FailureState:
    attempts = 1 if before is None else before.attempts + 1
    wait = min(_FIRST_WAIT * 2 ** min(attempts - 1, 10), _MAX_WAIT)
    return FailureState(now if before is None else before.since, now + wait, attempts, reason)
