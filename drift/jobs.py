"""Run the scheduled jobs of one leader's term. Each may stop anywhere and run again, also under another leader."""

import logging
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import import_module
from inspect import isabstract
from typing import NamedTuple

from ragtide.drift import checks, robustness
from ragtide.drift.anomalies import (
    ChangePointReporter,
    DailyDriftReporter,
    DailyDriftTest,
    Scanner,
    ScanResult,
    live_context,
    load_overrides,
    problem_intervals,
)
from ragtide.drift.checks import Check, CheckContext, MissingData, run_check
from ragtide.drift.input_drift import InputDriftCheck
from ragtide.drift.insights import run_insights
from ragtide.drift.job_history import RunResult
from ragtide.drift.leadership import Term
from ragtide.drift.problems import Raiser, record_groups
from ragtide.drift.rules import OpenWindows, StalledLanes, commit_rule_cursor, evaluate_rules
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from ragtide.drift.windows import (
    Idleness,
    MetricRef,
    Rollup,
    RollupBackoff,
    RollupResult,
    metrics_by_name,
    tombstone_moved_traces,
    update_segment_values,
)
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import RetentionSettings

logger = logging.getLogger(__name__)


_ROOMS = (checks, robustness)


@dataclass(frozen=True, slots=True)
class CycleResult:
    """Result of one cycle: moved traces, roll-up, verdicts and events."""

    moved: int
    rollup: RollupResult
    verdicts: int
    events: int


class AnomalyResult(NamedTuple):
    """Result of one scan for changes."""

    scan: ScanResult
    events: int


@dataclass(slots=True)
class JobContext:
    """State of one leader's term between runs."""

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
        """Roll up closed windows, evaluate rules and raise problems; everything is stored on return.

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
        raiser = Raiser(self.database, self.metrics, self.rules, rolled.segments, self.term, self.windows.base_s)
        watermarks = {lane: watermark.at for lane, watermark in rolled.lane_watermarks.items()}
        events = raiser.run(rules, now, watermarks, rolled.stored_until)
        if due:
            events += run_check(self._missing_data, self.check_context(rolled.stored_until), now).events
        commit_rule_cursor(self.database, found.cursor)
        if due or events:
            record_groups(self.database, now, self.term)
        for event in events:
            logger.info("problem %s %s: %s", event.problem_id, event.event, event.description)
        return CycleResult(moved, rolled, found.verdicts, len(events))

    def run_checks(self, checks: Iterable[Check], now: datetime) -> RunResult:
        """Run checks one after the other; events of each are stored before the next one runs, groups at the end."""
        found = [run_check(check, self.check_context(), now) for check in checks]
        events = sum(len(one.events) for one in found)
        if events:
            record_groups(self.database, now, self.term)
        return RunResult(read=sum(one.read for one in found), raised=events)

    def check_context(self, watermarks: Mapping[str, datetime] | None = None) -> CheckContext:
        """Make the context of a check's run; `watermarks` of lanes, None: those that roll-ups stored."""
        return CheckContext(
            self.database, self.evaluators, self.rules, self.windows, self.settings, self.term, watermarks
        )

    def run_insights(self, now: datetime) -> RunResult:
        """Update the insights of the running period, unless the last update was less than `insights_every_s` ago."""
        last = self._insights_at
        if last is not None and (now - last).total_seconds() < self.settings.insights_every_s:
            return RunResult(read=0, raised=0)
        result = run_insights(
            database=self.database,
            evaluators=self.evaluators,
            rules=self.rules,
            windows=self.windows,
            settings=self.settings,
            term=self.term,
            now=now,
            drift=self.drift,
        )
        self._insights_at = now
        return result

    def scan_for_changes(self, now: datetime, stopped: Callable[[], bool] = lambda: False) -> AnomalyResult:
        """Scan every series up to its lane's watermark, and report changes; events are stored on return.

        Raises `StopRequested` soon after `stopped` returns true; then nothing is reported, and the next scan continues.
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
        """Check questions for drift; events are stored on return. Raises `StopRequested` as `scan_for_changes` does."""
        found = InputDriftCheck(self.database, self.drift, self.rules, self.windows, self.term).run(now, stopped)
        return RunResult(read=found.applications, raised=len(found.events))

    def _slow_due(self, now: datetime) -> bool:
        """Whether steps that read more than the newest windows are due."""
        last = self._slow_at
        due = last is None or (now - last).total_seconds() >= self.settings.reconcile_every_s
        if due:
            self._slow_at = now
        return due


def server_time(database: Database) -> datetime:
    """Return the server's time, which all leaders share; rows have it too."""
    found: datetime = database.rows("SELECT now64(3, 'UTC') AS now")[0]["now"]
    return found


@cache
def every_check() -> tuple[type[Check], ...]:
    """Find every check in the modules of the rooms of checks, by module and name. Each needs no arguments."""
    return tuple(_find_checks())


def _find_checks() -> Iterator[type[Check]]:
    for room in _ROOMS:
        for module in sorted(one.name for one in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")):
            for found in vars(import_module(module)).values():
                is_check = isinstance(found, type) and issubclass(found, Check) and not isabstract(found)
                if is_check and found.__module__ == module:
                    yield found
