"""Backtest the detection of input drift: references are learned from the days before, as the job does."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import pairwise

from ragtide.drift.anomalies import Progress, load_overrides
from ragtide.drift.backtest.anomalies import NO_TERM, hourly_stops
from ragtide.drift.backtest.simulate import ProblemSimulation, SimulatedProblem
from ragtide.drift.input_drift import (
    INPUT_DRIFT,
    STALE_AFTER_S,
    TICK_S,
    InputDriftCheck,
    InputDriftState,
    QuestionSource,
    SourceProcessor,
    active_sources,
    input_drift_detection,
    shift_onset,
    source_key,
)
from ragtide.drift.problems import ProblemKey
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
    """Simulate the job in (first, until], seconds since 1970; `progress` gets the number of hours done."""
    check = InputDriftCheck(database, settings, rules, windows, NO_TERM)
    state = _SimulationState(rules)
    stops = hourly_stops(first, until, TICK_S)
    for done, (before, stop) in enumerate(pairwise(stops)):
        overrides = load_overrides(database, calendar.utc(stop))
        found = active_sources(database, calendar.utc(stop - calendar.DAY_S), calendar.utc(stop))
        active = [source for source in found if check.is_monitored(source)]
        for source in active:
            state.advance(check.processor(source, overrides), before, stop)
        state.clear_stale({source_key(source) for source in active}, stop)
        progress(done + 1, len(stops) - 1)
    for one in state.simulations.values():
        yield from one.simulated_problems()


@dataclass(slots=True)
class _SimulationState:
    """What the job stores in tables: states of applications, and problems."""

    rules: RuleSettings
    simulations: dict[ProblemKey, ProblemSimulation] = field(default_factory=dict)
    _states: dict[QuestionSource, InputDriftState] = field(default_factory=dict)
    _since: dict[ProblemKey, datetime] = field(default_factory=dict)  # of those that are drifted

    def advance(self, processor: SourceProcessor, first: int, until: int) -> None:
        """Process an application's questions of [first, until): tick by tick if drift begins or ends there.

        The instant `first` itself raises nothing.
        """
        before = self._states.get(processor.source)
        replayed = deepcopy(before)
        after = processor.advance(before, until)
        if _is_drifted(replayed) != _is_drifted(after):
            for at in range(first + TICK_S, until + 1, TICK_S):
                replayed = processor.advance(replayed, at)
                self._observe(processor, replayed, at)
        elif first < until:
            self._observe(processor, after, until)
        if after is not None:
            self._states[processor.source] = after

    def _observe(self, processor: SourceProcessor, drift_state: InputDriftState | None, at: int) -> None:
        key = source_key(processor.source)
        own = self.simulations.get(key)
        if drift_state is not None and drift_state.is_drifted:
            own = own or self.simulations.setdefault(key, ProblemSimulation(key, INPUT_DRIFT, self.rules.of(key.app)))
            since = calendar.utc(shift_onset(drift_state))
            if own.is_active:
                since = min(since, self._since[key])
            self._since[key] = since
            own.detect(at, partial(input_drift_detection, processor, deepcopy(drift_state), since, self.rules))
        elif own is not None:
            own.clear(at)

    def clear_stale(self, active: set[ProblemKey], at: int) -> None:
        """Clear problems of applications that have sent no questions for so long that their state is stale."""
        replayed = {
            source_key(source) for source, drift_state in self._states.items() if at - drift_state.until < STALE_AFTER_S
        }
        for key in self.simulations.keys() - active - replayed:
            self.simulations[key].clear(at)


def _is_drifted(drift_state: InputDriftState | None) -> bool:
    return drift_state is not None and drift_state.is_drifted
