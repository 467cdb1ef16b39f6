"""Backtest anomaly detectors on past windows; problems stay in memory.

Detector states start empty, and baselines are learned of the time before. The scanner goes through the interval hour by
hour; problems are simulated after each tick and each day."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from ragtide.drift.anomalies import (
    DAILY_DRIFT,
    BatchSnapshot,
    ChangePointReporter,
    DailyDriftReporter,
    DailyDriftTest,
    InMemoryStateStore,
    Progress,
    ScanContext,
    Scanner,
    ScanResult,
    change_kind,
    load_overrides,
    problem_intervals,
)
from ragtide.drift.backtest.simulate import ProblemSimulation, SimulatedProblem
from ragtide.drift.leadership import Term
from ragtide.drift.problems import ProblemKey
from ragtide.drift.settings import DriftSettings, RuleSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.windows import SegmentValues
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database


@dataclass(slots=True)
class ChangePointSimulation:
    """Takes ticks in order of time."""

    reporter: ChangePointReporter
    _simulations: dict[ProblemKey, ProblemSimulation] = field(default_factory=dict)

    def observe(self, result: ScanResult, at: int) -> None:
        """Report the series in alarm at the end of a tick, seconds since 1970; the others count for significance."""
        known = {key for key, one in self._simulations.items() if one.is_active}
        found = self.reporter.alarms(result, known)
        for key, alarm in found.items():
            own = self.reporter.rules.of(key.app)
            detection = partial(self.reporter.detection, *alarm)
            simulation = ProblemSimulation(key, change_kind(key), own)
            self._simulations.setdefault(key, simulation).detect(at, detection)
        for key in self._simulations.keys() - found.keys():
            self._simulations[key].clear(at)

    def simulated_problems(self) -> Iterator[SimulatedProblem]:
        """Return the simulated problems."""
        for one in self._simulations.values():
            yield from one.simulated_problems()


@dataclass(slots=True)
class DailyDriftSimulation:
    """Takes scans in order of time; days that were complete before the first scan raise nothing."""

    _simulations: dict[ProblemKey, ProblemSimulation] = field(default_factory=dict)
    _last_day: int | None = None

    def observe(self, reporter: DailyDriftReporter, result: ScanResult, at: int) -> None:
        """Take the scan of that time."""
        day = reporter.last_complete_day(result)
        if self._last_day is None or day <= self._last_day:
            for one in self._simulations.values():
                one.tick(at)
        else:
            self._compare(reporter, result, day, at)
        self._last_day = max(day, self._last_day or day)

    def _compare(self, reporter: DailyDriftReporter, result: ScanResult, day: int, at: int) -> None:
        found = reporter.test.compare(result.snapshots, day)
        drifted = reporter.drifted_by_key(found)
        for key, one in drifted.items():
            own = reporter.rules.of(key.app)
            detection = partial(reporter.detection, one, day)
            self._simulations.setdefault(key, ProblemSimulation(key, DAILY_DRIFT, own)).detect(at, detection)
        for key in self._simulations.keys() - drifted.keys():
            if reporter.is_clear(key, result, found):
                self._simulations[key].clear(at)
            else:
                self._simulations[key].tick(at)

    def simulated_problems(self) -> Iterator[SimulatedProblem]:
        """Return the simulated problems."""
        for one in self._simulations.values():
            yield from one.simulated_problems()


NO_TERM = Term(0, calendar.utc(0))  # a backtest stores nothing


@dataclass(frozen=True, slots=True)
class TickRecorder:
    """Records the snapshots of each tick that alarms depend on.

    `keep_all_series`: whether to record series without an alarm too, as the significance over all series needs.
    """

    keep_all_series: bool
    ticks: dict[int, list[BatchSnapshot]] = field(default_factory=dict)

    def on_tick(self, seen: BatchSnapshot) -> None:
        """Copy the series in alarm, or the whole batch if the other series count too."""
        on = seen.batch.rows.state.alarms.on
        if self.keep_all_series or seen.batch.key.is_rollout:
            self.ticks.setdefault(seen.batch.processed_until, []).append(seen.subset(np.arange(len(on))))
        elif on.any():
            self.ticks.setdefault(seen.batch.processed_until, []).append(seen.subset(np.flatnonzero(on)))

    def pop_results(self, first: int, until: int) -> dict[int, ScanResult]:
        """Return the results of the ticks that ended in (first, until], and forget them."""
        found = {}
        for at, some in self.ticks.items():
            if first < at <= until:
                seen = tuple(one for one in some if not one.batch.key.is_rollout)
                compared = tuple(one for one in some if one.batch.key.is_rollout)
                found[at] = ScanResult(seen, 0, 0, compared)
        self.ticks.clear()
        return found


def simulate_anomalies(
    database: Database,
    evaluators: Mapping[str, Evaluator],
    settings: DriftSettings,
    rules: RuleSettings,
    windows: WindowSettings,
    segments: SegmentValues,
    first: int,
    until: int,
    progress: Progress,
) -> Iterator[SimulatedProblem]:
    """Simulate the anomaly job in (first, until], seconds since 1970; `progress` gets the number of hours done.

    Problems that were raised exclude their intervals from history; operator actions count from their own time on.
    """
    lanes = frozenset(one.lane for one in evaluators.values())
    recorder = TickRecorder(settings.fleet_run_days is not None)
    context = ScanContext(
        store=InMemoryStateStore(),
        closed_until=lambda now: dict.fromkeys(lanes, now),
        overrides=lambda now: load_overrides(database, now),
        on_tick=recorder.on_tick,
    )
    scanner = Scanner(database, evaluators, windows, settings, context)
    reporter = ChangePointReporter(database, rules, scanner.monitored, segments, NO_TERM, settings)
    alarms, days = ChangePointSimulation(reporter), DailyDriftSimulation()

    def daily(at: int) -> DailyDriftReporter:
        overrides = load_overrides(database, calendar.utc(at))
        test = DailyDriftTest(database, problem_intervals(database), overrides, windows, settings)
        return DailyDriftReporter(database, rules, scanner.monitored, segments, NO_TERM, test)

    stops = hourly_stops(first, until, scanner.tick_s)
    for done, (before, stop) in enumerate(pairwise(stops)):
        result = scanner.run(calendar.utc(stop))
        results = recorder.pop_results(before, stop)
        for at in range(before + scanner.tick_s, stop + 1, scanner.tick_s):
            alarms.observe(results.get(at, ScanResult((), 0, 0)), at)
        days.observe(daily(stop), result, stop)
        progress(done + 1, len(stops) - 1)
    yield from alarms.simulated_problems()
    yield from days.simulated_problems()


def hourly_stops(first: int, until: int, tick_s: int) -> Sequence[int]:
    """Return the ends of whole hours in (first, until], seconds since 1970, and both ends.

    The first end stands twice: its scan covers everything before it.
    """
    begin, end = calendar.floor(first, tick_s), calendar.floor(until, tick_s)
    hours = range(calendar.ceil(begin + 1, calendar.HOUR_S), end, calendar.HOUR_S)
    return [begin, begin, *hours, end] if begin < end else []
