"""The scheduled jobs of one leader's term. Each may stop anywhere and run again, also under another leader."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from drift.insights.comparing import state_comparisons
from drift.insights.insight import Period
from drift.insights.new_fingerprints import state_new_fingerprints
from drift.insights.stated import withdraw
from drift.insights.stating import state_weak_points
from drift.job_runs import Done
from drift.kinds.silence import LastSeen, watch_silence
from drift.leadership import Term
from drift.problems.raising import Raiser
from drift.questions.watching import QuestionWatch
from drift.reconcile import reconcile
from drift.rules import stored
from drift.rules.judging import judge
from drift.rules.missing import SilentLanes
from drift.rules.open_windows import OpenWindows
from drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from drift.watching.bearings import Running
from drift.watching.daily import Daily
from drift.watching.daily_told import DailyTeller
from drift.watching.look import Look, Looked
from drift.watching.reference import in_trouble, references
from drift.watching.telling import Teller
from drift.windows.metrics import WatchedMetric, metrics_by_name
from drift.windows.rollup import RolledUp, Rollup
from drift.windows.segments import segment_values
from drift.windows.watermark import FAST, Idleness
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database
from sinks.settings import RetentionSettings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchReport:
    """What one round of watching did."""

    moved: int
    rolled_up: RolledUp
    verdicts: int
    events: int


class Changes(NamedTuple):
    """What one look for changes did."""

    looked: Looked
    events: int


@dataclass(slots=True)
class Jobs:
    """Holds what one term remembers from round to round."""

    database: Database
    evaluators: Mapping[str, Evaluator]
    windows: WindowSettings
    rules: RuleSettings
    settings: JobSettings
    term: Term
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    drift: DriftSettings = field(default_factory=DriftSettings)
    metrics: Mapping[str, WatchedMetric] = field(init=False)
    _idleness: Idleness = field(default_factory=Idleness)
    _last_seen: LastSeen = field(default_factory=LastSeen)
    _open: OpenWindows = field(init=False)
    _silent: SilentLanes = field(init=False)
    _slow_at: datetime | None = None
    _insights_at: datetime | None = None

    def __post_init__(self) -> None:
        self.metrics = metrics_by_name(self.evaluators)
        self._open = OpenWindows(self.metrics, self.rules, self.windows, self.term)
        self._silent = SilentLanes(self.metrics, self.rules, self.windows, self.term)

    def watch(self, now: datetime) -> WatchReport:
        """Closed windows are stored and judged, and what follows for problems is recorded, when this returns.

        One thread at a time. `now` is the server's time (see `server_time`).
        """
        due = self._slow_due(now)
        # In the same thread as the roll-up, and before it: its marks must not be worked off half-way.
        moved = reconcile(self.database, self.evaluators, self.windows.base_s, now) if due else 0
        rollup = Rollup(self.database, self.evaluators, self.windows, self.term, self._idleness, self.retention)
        rolled = rollup.run(now)
        found = judge(self.database, self.metrics, self.rules, self.windows.base_s, rolled.segments, self.term)
        rules = {**self._open.judge(self.database, now, rolled.closing, rolled.segments), **found.rules}
        if due:
            for series, more in self._silent.judge(self.database, now, rolled.closing).items():
                rules[series] = (*rules.get(series, ()), *more)
        raiser = Raiser(self.database, self.metrics, self.rules, rolled.segments, self.term)
        events = raiser.run(rules, now, {lane: watermark.at for lane, watermark in rolled.closing.items()})
        if due and FAST in rolled.closing:
            closed = rolled.closing[FAST].at
            known, base_s = self.evaluators.values(), self.windows.base_s
            events += watch_silence(self.database, self._last_seen, known, self.rules, base_s, self.term, now, closed)
        stored.finish(self.database, found.position)
        for event in events:
            logger.info("problem %s %s: %s", event.problem_id, event.event, event.description)
        return WatchReport(moved, rolled, found.verdicts, len(events))

    def state_insights(self, now: datetime) -> Done:
        """The insights of the running period are as this look finds them where it is time for one."""
        last = self._insights_at
        if last is not None and (now - last).total_seconds() < self.settings.insights_every_s:
            return Done(read=0, raised=0)
        read, found = state_weak_points(self.database, self.metrics, self.rules, self.settings, self.term, now)
        found += state_comparisons(self.database, self.metrics, self.windows, self.settings, self.term, now)
        found += state_new_fingerprints(self.database, self.evaluators, self.windows, self.settings, self.term, now)
        withdraw(self.database, found, Period.of(now, self.settings.insights_period_s), self.term)
        self._insights_at = now
        return Done(read=read, raised=len(found))

    def look_for_changes(self, now: datetime, stopped: Callable[[], bool] = lambda: False) -> Changes:
        """Every series was looked at up to its lane's watermark, and what follows is recorded, when this returns.

        Raises `Stopped` soon after `stopped` says so; nothing is told then, and the next look goes on.
        """
        bearings = Running(self.database, self.windows, self.term.next_version)
        look = Look(self.database, self.evaluators, self.windows, self.drift, bearings)
        looked = look.run(now, stopped=stopped)
        segments = segment_values(self.database, self.windows, self.term, now)
        teller = Teller(self.database, self.rules, self.drift, look.watched, segments, self.term)
        bad, said = in_trouble(self.database), references(self.database)
        daily = Daily(self.database, bad, said, self.windows, self.drift)
        unlike = DailyTeller(self.database, daily, self.rules, look.watched, segments, self.term, look.span_s)
        events = (*teller.tell(looked, now), *unlike.tell(looked, now))
        for event in events:
            logger.info("problem %s %s: %s", event.problem_id, event.event, event.description)
        return Changes(looked, len(events))

    def watch_questions(self, now: datetime, stopped: Callable[[], bool]) -> Done:
        """What users ask was looked at, and what follows is recorded, when this returns; `Stopped` as above."""
        found = QuestionWatch(self.database, self.drift, self.rules, self.windows, self.term).run(now, stopped)
        return Done(read=found.applications, raised=len(found.events))

    def _slow_due(self, now: datetime) -> bool:
        """Whether it is time again for what looks at more than the newest windows."""
        last = self._slow_at
        due = last is None or (now - last).total_seconds() >= self.settings.reconcile_every_s
        if due:
            self._slow_at = now
        return due


def server_time(database: Database) -> datetime:
    """The clock that all leaders share: rows get their times from it too."""
    found: datetime = database.rows("SELECT now64(3, 'UTC') AS now")[0]["now"]
    return found
