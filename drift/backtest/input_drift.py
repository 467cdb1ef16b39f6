"""Tries settings of detectors on what users asked: references are learned of the days before, as the job would have."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import pairwise

from ragtide.drift.anomalies.references import load_overrides
from ragtide.drift.anomalies.scanner import Progress
from ragtide.drift.backtest.anomalies import NO_TERM, hourly_stops
from ragtide.drift.backtest.simulate import ProblemSimulation, SimulatedProblem
from ragtide.drift.input_drift.check import KIND, STALE_AFTER_S, InputDriftCheck, SourceProcessor, detection_of
from ragtide.drift.input_drift.messages import key_of, onset
from ragtide.drift.input_drift.reference import TICK_S, Memory
from ragtide.drift.input_drift.source import QuestionSource, active_sources
from ragtide.drift.problems.report import ProblemKey
from ragtide.drift.settings import DriftSettings, RuleSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.sinks.clickhouse.database import Database


def simulate_input_drift(
    database: Database,
    settings: DriftSettings,
    rules: RuleSettings,
    windows: WindowSettings,
    first: int,
    until: int,
    progress: Progress,
) -> Iterator[SimulatedProblem]:
    """What would have been raised in (first, until], seconds since 1970; `progress` is told how many hours are done."""
    watch = InputDriftCheck(database, settings, rules, windows, NO_TERM)
    state = _SimulationState(rules)
    stops = hourly_stops(first, until, TICK_S)
    for done, (before, stop) in enumerate(pairwise(stops)):
        said = load_overrides(database, calendar.utc(stop))
        found = active_sources(database, calendar.utc(stop - calendar.DAY_S), calendar.utc(stop))
        active = [asked for asked in found if watch.is_monitored(asked)]
        for asked in active:
            state.advance(watch.processor(asked, said), before, stop)
        state.clear_stale({key_of(asked) for asked in active}, stop)
        progress(done + 1, len(stops) - 1)
    for one in state.simulations.values():
        yield from one.simulated_problems()


@dataclass(slots=True)
class _SimulationState:
    """What the job keeps in tables: memories, and problems."""

    rules: RuleSettings
    simulations: dict[ProblemKey, ProblemSimulation] = field(default_factory=dict)
    _states: dict[QuestionSource, Memory] = field(default_factory=dict)
    _since: dict[ProblemKey, datetime] = field(default_factory=dict)  # of those that are drifted

    def advance(self, runner: SourceProcessor, first: int, until: int) -> None:
        """An application's questions of [first, until) are looked at: tick by tick where something is amiss at one end
        only, else all at once.

        The instant `first` itself raises nothing.
        """
        before = self._states.get(runner.source)
        held = deepcopy(before)
        after = runner.advance(before, until)
        if _is_drifted(held) != _is_drifted(after):
            for at in range(first + TICK_S, until + 1, TICK_S):
                held = runner.advance(held, at)
                self._observe(runner, held, at)
        elif first < until:
            self._observe(runner, after, until)
        if after is not None:
            self._states[runner.source] = after

    def _observe(self, runner: SourceProcessor, memory: Memory | None, at: int) -> None:
        key = key_of(runner.source)
        own = self.simulations.get(key)
        if memory is not None and memory.is_drifted:
            own = own or self.simulations.setdefault(key, ProblemSimulation(key, KIND, self.rules.of(key.app)))
            since = calendar.utc(onset(memory))
            if own.is_active:
                since = min(since, self._since[key])
            self._since[key] = since
            own.detect(at, partial(detection_of, runner, deepcopy(memory), since, self.rules))
        elif own is not None:
            own.clear(at)

    def clear_stale(self, active: set[ProblemKey], at: int) -> None:
        """Problems of who asks nothing for so long that nothing is remembered are over."""
        held = {key_of(asked) for asked, memory in self._states.items() if at - memory.until < STALE_AFTER_S}
        for key in self.simulations.keys() - active - held:
            self.simulations[key].clear(at)


def _is_drifted(memory: Memory | None) -> bool:
    return memory is not None and memory.is_drifted
