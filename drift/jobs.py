"""The scheduled jobs of one leader's term. Each may stop anywhere and run again, also under another leader."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from drift.insights.weakest_questions import state_weakest_questions
from drift.leadership import Term
from drift.raising import Raiser
from drift.reconcile import reconcile
from drift.rules import stored
from drift.rules.judging import judge
from drift.rules.missing import SilentLanes
from drift.rules.open_windows import OpenWindows
from drift.settings import JobSettings, RuleSettings, WindowSettings
from drift.silence import LastSeen, watch_silence
from drift.windows.metrics import WatchedMetric, metrics_by_name
from drift.windows.rollup import RolledUp, Rollup
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

    def state_insights(self, now: datetime) -> int:
        """The insights of the running period are stored where it is time for it; how many."""
        last = self._insights_at
        if last is not None and (now - last).total_seconds() < self.settings.insights_every_s:
            return 0
        found = state_weakest_questions(self.database, self.metrics, self.rules, self.settings, self.term, now)
        self._insights_at = now
        return len(found)

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
