"""The current fault, and a file that records which one was active when."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypedDict

from ragtide.stream.demo.faults import Fault
from ragtide.stream.demo.schedule import Episode, Schedule


class _Past(TypedDict):
    fault: str
    start: str  # RFC 3339
    end: str | None


class Timeline:
    """The schedule against the clock: it starts with the first score, without a fault before."""

    def __init__(
        self, schedule: Schedule, file: Path, clock: Callable[[], datetime], monotonic: Callable[[], float]
    ) -> None:
        self._schedule = schedule
        self._file = file
        self._clock = clock
        self._monotonic = monotonic
        self._began: float | None = None
        self._first_score_at: datetime | None = None
        self._past: list[_Past] = []
        self._now: Episode | None = None

    def begin(self) -> None:
        """Start the schedule at the first score."""
        self._began, self._first_score_at = self._monotonic(), self._clock()
        self._write()

    @property
    def elapsed_s(self) -> float | None:
        """Since the first score; None before."""
        return None if self._began is None else self._monotonic() - self._began

    def now(self) -> Episode | None:
        """The episode that is on; a change is written to the file."""
        elapsed = self.elapsed_s
        episode = None if elapsed is None else self._schedule.at(elapsed)
        if episode != self._now:
            at = self._clock().isoformat()
            if self._now:
                self._past[-1]["end"] = at
            if episode:
                self._past.append({"fault": episode.fault.name, "start": at, "end": None})
            self._now = episode
            self._write()
        return episode

    def fault(self) -> Fault | None:
        """The fault that is on."""
        episode = self.now()
        return episode.fault if episode else None

    def _write(self) -> None:
        first = self._first_score_at.isoformat() if self._first_score_at else None
        self._file.write_text(json.dumps({"first_score_at": first, "faults": self._past}, indent=2) + "\n")
