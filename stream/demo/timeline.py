"""The current fault, and a file that records which one was active when."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypedDict

from ragtide.stream.demo.faults import Fault
from ragtide.stream.demo.schedule import Episode, Schedule


class _Past(TypedDict):
    fault: str
    title: str  # for people
    start: str  # RFC 3339
    end: str | None


class Timeline:
    """The schedule against the clock: it starts with the first score, without a fault before.

    A fault is on until its first `shown_after_s` are judged, however long jobs take; all that follows is later then.
    """

    def __init__(
        self,
        schedule: Schedule,
        file: Path,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        shown_after_s: float = 0.0,
    ) -> None:
        self._schedule = schedule
        self._file = file
        self._clock = clock
        self._monotonic = monotonic
        self._began: float | None = None
        self._first_score_at: datetime | None = None
        self._past: list[_Past] = []
        self._now: Episode | None = None
        self._shown_after = timedelta(seconds=shown_after_s)
        self._judged_from: datetime | None = None  # the fault may end once windows up to then are judged
        self._is_late = False
        self._delay_s = 0.0

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
        episode = None if elapsed is None else self._schedule.at(elapsed - self._delay_s)
        if episode != self._now:
            now = self._clock()
            if self._now:
                if self._judged_from is not None:
                    self._is_late = True
                    return self._now
                if self._is_late and elapsed is not None:
                    self._delay_s, self._is_late = elapsed - self._now.end_s, False
                    episode = None
                self._past[-1]["end"] = now.isoformat()
            if episode:
                fault = episode.fault
                self._past.append({"fault": fault.name, "title": fault.title, "start": now.isoformat(), "end": None})
                self._judged_from = now + self._shown_after if self._shown_after else None
            self._now = episode
            self._write()
        return episode

    def judged(self, until: Mapping[str, datetime]) -> None:
        """Tell up to when the windows of each metric are judged."""
        if self._now is None or self._judged_from is None:
            return
        clearest = until.get(self._now.fault.moves[0])
        if clearest is not None and clearest >= self._judged_from:
            self._judged_from = None

    def fault(self) -> Fault | None:
        """The fault that is on."""
        episode = self.now()
        return episode.fault if episode else None

    def _write(self) -> None:
        first = self._first_score_at.isoformat() if self._first_score_at else None
        self._file.write_text(json.dumps({"first_score_at": first, "faults": self._past}, indent=2) + "\n")
