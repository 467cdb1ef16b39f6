"""Step a rule's problem through verdicts that came together, as runs at the end of each window would have. Pure.

After an outage of jobs or workers, one run gets many verdicts of a series. The life cycle of a problem reads the newest
only, so the end of each interval is a step of its own. A step's events are as late after it as this run is after the
watermark. Flap intervals and quiet times are therefore those of live runs.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from ragtide.drift.problems.model import EventRow, Problem
from ragtide.drift.problems.rule_lifecycle import (
    VERDICT_HORIZON,
    DetailsBuilder,
    flap_timeout_event,
    next_event,
    reported_until,
)
from ragtide.drift.problems.store import fold_events
from ragtide.drift.rules import Rule, Series, Verdict, VersionStart
from ragtide.drift.settings import RuleSettings

_INSTANT = timedelta(microseconds=1)


class Clock(NamedTuple):
    """The date of a run's events, and up to when it has windows. Steps up to `current_from` are a backlog."""

    now: datetime
    closed_until: datetime
    current_from: datetime

    @classmethod
    def of(cls, now: datetime, watermark: datetime, stored_until: datetime, base_s: float) -> "Clock":
        """Make the clock of a run. Events are as late as the watermark; only the last base window is current."""
        return cls(now - (watermark - stored_until), stored_until, stored_until - timedelta(seconds=base_s))

    def date_of(self, instant: datetime) -> datetime:
        """Return the date of events at this instant of event time."""
        return self.now - (self.closed_until - instant)

    def instant_of(self, date: datetime) -> datetime:
        """Return the instant of event time at which events have this date."""
        return self.closed_until - (self.now - date)


class _RecentVerdicts:
    """The last good and the last bad verdicts of one evaluator version, `limit` of each, taken in order of time."""

    def __init__(self, limit: int) -> None:
        self._good: deque[Verdict] = deque(maxlen=limit)
        self._bad: deque[Verdict] = deque(maxlen=limit)

    def add(self, verdict: Verdict) -> None:
        """Take the next one."""
        (self._bad if verdict.breached else self._good).append(verdict)

    def at(self, instant: datetime) -> list[Verdict]:
        """Return them in order of time, as a run at that instant reads them."""
        oldest = instant - VERDICT_HORIZON
        return sorted((one for one in (*self._good, *self._bad) if one.end > oldest), key=attrgetter("start"))


def next_timeout(
    rule: Rule, last: Problem | None, last_breach_end: datetime | None, settings: RuleSettings, clock: Clock
) -> datetime | None:
    """Return the instant of event time at which quiet alone changes the last episode; None: it never does."""
    if last is None or last.state != "open":
        return None
    if last.all_clear_since is not None:
        return clock.instant_of(last.all_clear_since + timedelta(seconds=settings.flapping_quiet_s))
    if rule.kind.zero_tolerance and rule.kind.problem_kind in last.active_kinds and last_breach_end is not None:
        return last_breach_end + timedelta(seconds=settings.any_resolve_after_s)
    return None


@dataclass(slots=True)
class Backlog:
    """One rule on one series; `rows` are the stored events of its problem.

    `limit` says how many of the last good and of the last bad verdicts a step looks at.
    """

    series: Series
    rule: Rule
    rows: Sequence[EventRow]
    settings: RuleSettings
    clock: Clock
    limit: int
    details_of: DetailsBuilder
    epoch: int
    _events: list[EventRow] = field(default_factory=list)
    _episodes: Sequence[Problem] = ()
    _recent: dict[VersionStart, _RecentVerdicts] = field(default_factory=dict)
    _last_breach_end: datetime | None = None
    _reported_until: datetime | None = None

    def events(
        self, verdicts: Mapping[VersionStart, Sequence[Verdict]], fresh: Collection[datetime]
    ) -> Sequence[EventRow]:
        """Return the events that follow, those of the current step last.

        `verdicts` are of each version; `fresh` are the ends of those that no run has stepped through yet. Instants up
        to the last report of the problem are no steps, so that a killed run may be repeated.
        """
        self._episodes = sorted(fold_events(self.rows), key=attrgetter("episode"))
        kind = self.rule.kind.problem_kind
        states = [state for one in self._episodes if (state := one.by_kind.get(kind)) is not None]
        self._reported_until = max(map(reported_until, states), default=None)
        in_order = sorted(
            ((verdict, version) for version, some in verdicts.items() for verdict in some),
            key=lambda one: (one[0].end, one[0].start),
        )
        for end, group in groupby(in_order, key=lambda one: one[0].end):
            together = list(group)
            is_current = end > self.clock.current_from
            is_step = not is_current and end in fresh and self._is_new(end)
            if is_current:
                self._take_timeouts(self.clock.current_from)
            elif is_step:
                self._take_timeouts(end - _INSTANT)
            for verdict, version in together:
                self._take(verdict, version)
            if is_step and self._matters([verdict for verdict, _ in together]):
                self._step(end, self.clock.date_of(end), is_newest=False)
        self._take_timeouts(self.clock.current_from)
        if not self._step(self.clock.closed_until, self.clock.now, is_newest=True) and self._episodes:
            self._append(flap_timeout_event(self._episodes[-1], self.settings, self.clock.now, self.epoch))
        return self._events

    def _is_new(self, instant: datetime) -> bool:
        """Whether the last report of the problem is from before that instant."""
        return self._reported_until is None or instant > self._reported_until

    def _take(self, verdict: Verdict, version: VersionStart) -> None:
        self._recent.setdefault(version, _RecentVerdicts(self.limit)).add(verdict)
        if verdict.breached and verdict.samples >= self.rule.min_sample:
            self._last_breach_end = verdict.end

    def _matters(self, verdicts: Sequence[Verdict]) -> bool:
        """Whether these verdicts may open or end a problem; the current step updates an open one."""
        last = self._episodes[-1] if self._episodes else None
        is_bad = any(verdict.breached for verdict in verdicts)
        if last is None or last.state == "resolved":
            return is_bad
        return last.state == "pending" or is_bad != (self.rule.kind.problem_kind in last.active_kinds)

    def _take_timeouts(self, until: datetime) -> None:
        """Take the steps up to then at which quiet alone changes something."""
        own = self.settings.of(self.series.app)
        while True:
            last = self._episodes[-1] if self._episodes else None
            instant = next_timeout(self.rule, last, self._last_breach_end, own, self.clock)
            if last is None or instant is None or instant > until or not self._is_new(instant):
                return
            date = self.clock.date_of(instant)
            if last.all_clear_since is not None:
                is_over = self._append(flap_timeout_event(last, self.settings, date, self.epoch))
            else:
                is_over = self._step(instant, date, is_newest=False)
            if not is_over:
                return

    def _step(self, instant: datetime, date: datetime, *, is_newest: bool) -> bool:
        recent = {version: found for version, some in self._recent.items() if (found := some.at(instant))}
        common = (self.series, self.rule, recent, self._episodes, self.settings, date, instant)
        return self._append(next_event(*common, self.details_of, self.epoch, is_newest=is_newest))

    def _append(self, event: EventRow | None) -> bool:
        if event is not None:
            self._events.append(event)
            self._episodes = sorted(fold_events([*self.rows, *self._events]), key=attrgetter("episode"))
        return event is not None
