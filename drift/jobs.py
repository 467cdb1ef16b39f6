"""The scheduled jobs of one leader's term. Each may stop anywhere and run again, also under another leader."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from ragtide.drift.anomalies.change_points import ChangePointReporter
from ragtide.drift.anomalies.daily_drift import DailyDriftReporter, DailyDriftTest
from ragtide.drift.anomalies.references import load_overrides, problem_intervals
from ragtide.drift.anomalies.scanner import Scanner, ScanResult, live_context
from ragtide.drift.checks.engine import Check, CheckContext, run_check
from ragtide.drift.checks.missing_data import MissingData
from ragtide.drift.input_drift.check import InputDriftCheck
from ragtide.drift.insights.job import run_insights
from ragtide.drift.job_history import RunResult
from ragtide.drift.leadership import Term
from ragtide.drift.problems.raise_from_rules import Raiser
from ragtide.drift.rules import queries
from ragtide.drift.rules.early_any import OpenWindows
from ragtide.drift.rules.evaluate import evaluate_rules
from ragtide.drift.rules.stalled_lanes import StalledLanes
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from ragtide.drift.windows.backoff import RollupBackoff
from ragtide.drift.windows.metrics import MetricRef, metrics_by_name
from ragtide.drift.windows.moved_traces import tombstone_moved_traces
from ragtide.drift.windows.rollup import Rollup, RollupResult
from ragtide.drift.windows.segments import update_segment_values
from ragtide.drift.windows.watermark import Idleness
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import RetentionSettings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CycleResult:
    """What one round of watching did."""

    moved: int
    rollup: RollupResult
    verdicts: int
    events: int


class AnomalyResult(NamedTuple):
    """What one look for changes did."""

    scan: ScanResult
    events: int


@dataclass(slots=True)
class JobContext:
    """Holds what one term remembers from round to round."""

    database: Database
    evaluators: Mapping[str, Evaluator]
    windows: WindowSettings
    rules: RuleSettings
    settings: JobSettings
    term: Term
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    drift: DriftSettings = field(default_factory=DriftSettings)
    metrics: Mapping[str, MetricRef] = field(init=False)
    pace: RollupBackoff = field(default_factory=RollupBackoff)
    _idleness: Idleness = field(default_factory=Idleness)
    _missing_data: MissingData = field(default_factory=MissingData)
    _open_windows: OpenWindows = field(init=False)
    _stalled_lanes: StalledLanes = field(init=False)
    _slow_at: datetime | None = None
    _insights_at: datetime | None = None

    def __post_init__(self) -> None:
        self.metrics = metrics_by_name(self.evaluators)
        self._open_windows = OpenWindows(self.metrics, self.rules, self.windows, self.term)
        self._stalled_lanes = StalledLanes(self.metrics, self.rules, self.windows, self.term)

    def run_cycle(self, now: datetime) -> CycleResult:
        """Closed windows are stored and judged, and what follows for problems is recorded, when this returns.

        One thread at a time. `now` is the server's time (see `server_time`).
        """
        due = self._slow_due(now)
        # In the same thread as the roll-up, and before it: its marks must not be worked off half-way.
        moved = tombstone_moved_traces(self.database, self.windows.base_s, now) if due else 0
        rollup = Rollup(
            self.database, self.evaluators, self.windows, self.term, self._idleness, self.retention, self.pace
        )
        rolled = rollup.run(now)
        found = evaluate_rules(self.database, self.metrics, self.rules, self.windows.base_s, rolled.segments, self.term)
        rules = {
            **self._open_windows.evaluate(self.database, now, rolled.lane_watermarks, rolled.segments),
            **found.rules,
        }
        if due:
            for series, more in self._stalled_lanes.evaluate(self.database, now, rolled.lane_watermarks).items():
                rules[series] = (*rules.get(series, ()), *more)
        raiser = Raiser(self.database, self.metrics, self.rules, rolled.segments, self.term)
        watermarks = {lane: watermark.at for lane, watermark in rolled.lane_watermarks.items()}
        events = [*raiser.run(rules, now, watermarks)]
        if due:
            events += run_check(self._missing_data, self.check_context(watermarks), now).events
        queries.commit_cursor(self.database, found.cursor)
        for event in events:
            logger.info("problem %s %s: %s", event.problem_id, event.event, event.description)
        return CycleResult(moved, rolled, found.verdicts, len(events))

    def run_checks(self, checks: Iterable[Check], now: datetime) -> RunResult:
        """One after the other; what follows from each is stored before the next one runs."""
        found = [run_check(check, self.check_context(), now) for check in checks]
        return RunResult(read=sum(one.read for one in found), raised=sum(len(one.events) for one in found))

    def check_context(self, watermarks: Mapping[str, datetime] | None = None) -> CheckContext:
        """What a run of checks looks at; `watermarks` of lanes, None: as roll-ups stored them."""
        return CheckContext(
            self.database, self.evaluators, self.rules, self.windows, self.settings, self.term, watermarks
        )

    def run_insights(self, now: datetime) -> RunResult:
        """Update the insights of the running period, unless the last update was less than `insights_every_s` ago."""
        last = self._insights_at
        if last is not None and (now - last).total_seconds() < self.settings.insights_every_s:
            return RunResult(read=0, raised=0)
        result = run_insights(self.database, self.evaluators, self.rules, self.windows, self.settings, self.term, now)
        self._insights_at = now
        return result

    def scan_for_changes(self, now: datetime, stopped: Callable[[], bool] = lambda: False) -> AnomalyResult:
        """Every series was looked at up to its lane's watermark, and what follows is recorded, when this returns.

        Raises `Stopped` soon after `stopped` says so; nothing is told then, and the next look goes on.
        """
        context = live_context(self.database, self.windows, self.term.next_version)
        scanner = Scanner(self.database, self.evaluators, self.windows, self.drift, context)
        scan = scanner.run(now, stopped=stopped)
        segments = update_segment_values(self.database, self.windows, self.term, now)
        excluded, overrides = problem_intervals(self.database), load_overrides(self.database)
        test = DailyDriftTest(self.database, excluded, overrides, self.windows, self.drift)
        shared = (self.database, self.rules, scanner.monitored, segments, self.term)
        alarms, days = ChangePointReporter(*shared, self.drift), DailyDriftReporter(*shared, test)
        events = (*alarms.report(scan, now), *days.report(scan, now))
        for event in events:
            logger.info("problem %s %s: %s", event.problem_id, event.event, event.description)
        return AnomalyResult(scan, len(events))

    def check_input_drift(self, now: datetime, stopped: Callable[[], bool]) -> RunResult:
        """What users ask was looked at, and what follows is recorded, when this returns; `Stopped` as above."""
        found = InputDriftCheck(self.database, self.drift, self.rules, self.windows, self.term).run(now, stopped)
        return RunResult(read=found.applications, raised=len(found.events))

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
