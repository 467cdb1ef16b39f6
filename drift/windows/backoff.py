"""The batch size of a roll-up, and the windows and applications that wait because their statements failed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift.windows.scope import WindowKey

MAX_WINDOWS = 1000  # of one batch
_FIRST_WAIT = timedelta(seconds=60)
_MAX_WAIT = timedelta(seconds=600)


class Application(NamedTuple):
    """An application whose windows wait together."""

    app: str
    environment: str


class FailureState(NamedTuple):
    """Consecutive failures: since when, how many, the last reason, and until when to wait."""

    since: datetime
    until: datetime
    attempts: int
    reason: str


@dataclass(slots=True)
class RollupBackoff:
    """Backoff of failed windows within one leader's term; a new leader tries everything at once.

    A window that fails alone waits, twice as long after each failure. So does its application until one of its windows
    succeeds: an application that always fails costs one attempt per wait.
    """

    batch_size: int = MAX_WINDOWS
    succeeded: set[Application] = field(default_factory=set)  # in this term
    _windows: dict[WindowKey, FailureState] = field(default_factory=dict)
    _applications: dict[Application, FailureState] = field(default_factory=dict)

    def next_batch(self, todo: Sequence[WindowKey]) -> list[WindowKey]:
        """Return the next windows. A window that failed before, or whose application did, is tried alone."""
        if self._is_suspect(todo[0]):
            return [todo[0]]
        end = next((i for i, window in enumerate(todo[: self.batch_size]) if self._is_suspect(window)), self.batch_size)
        return list(todo[:end])

    def in_order(self, windows: Iterable[WindowKey], now: datetime) -> list[WindowKey]:
        """Return windows that do not wait, the oldest first, those that failed before last."""
        ready = [one for one in windows if not self._waits(one, now)]
        return sorted(ready, key=lambda one: (one in self._windows, self._is_suspect(one), one.start, one))

    def waiting(self, now: datetime) -> list[Application]:
        """Return the applications that wait."""
        return [application for application, failing in self._applications.items() if now < failing.until]

    def record_success(self, batch: Sequence[WindowKey]) -> None:
        """Record that the batch is stored; the next one may be half as large again."""
        if len(batch) >= self.batch_size:
            self.batch_size = min(MAX_WINDOWS, self.batch_size + self.batch_size // 2 + 1)
        for window in batch:
            self._windows.pop(window, None)
            self._applications.pop(_application(window), None)
            self.succeeded.add(_application(window))

    def halve(self, batch: Sequence[WindowKey]) -> None:
        """Halve the batch size: the batch was too much for the server."""
        self.batch_size = max(1, len(batch) // 2)

    def record_failure(self, window: WindowKey, reason: str, now: datetime) -> None:
        """Record that the window failed alone; it waits, and so does its application."""
        application = _application(window)
        self._windows[window] = _next_failure(self._windows.get(window), reason, now)
        self._applications[application] = _next_failure(self._applications.get(application), reason, now)

    def forget(self, marked: Iterable[WindowKey], now: datetime) -> None:
        """Drop windows that are no longer marked and whose application does not wait."""
        still = {*marked}
        for window in [one for one in self._windows if one not in still]:
            if not self._application_waits(window, now):
                del self._windows[window]
                self.succeeded.add(_application(window))

    def failing(self) -> Mapping[Application, FailureState]:
        """Return applications with failed windows, each with its window that failed most often."""
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
