"""Tries objectives on past windows: whether a budget burns is asked whenever a base window ended, as jobs ask it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ragtide.drift import sql
from ragtide.drift.backtest.simulate import ProblemSimulation, SimulatedProblem
from ragtide.drift.checks.error_budget import (
    CLEAR_FRACTION,
    DAY_S,
    FINE_S,
    BudgetUse,
    BurnWindow,
    burn_windows,
    detection_of,
    fastest_burn,
    hour_s,
    key_of_objective,
    lookbacks,
    within_noise,
)
from ragtide.drift.detectors.arrays import Integers
from ragtide.drift.problems.report import Detection, ProblemKey
from ragtide.drift.settings import Objective, RuleSettings, WindowSettings
from ragtide.drift.windows.histogram import bin_bounds, count_out_of_bounds
from ragtide.drift.windows.metrics import MetricRef
from ragtide.sinks.clickhouse.database import Database


@dataclass(frozen=True, slots=True)
class _Counts:
    """Windows of one size in order of time: their starts, and up to each the records and the wrong ones before it."""

    start: Integers
    records: Integers
    bad: Integers

    @classmethod
    def of(cls, windows: Sequence[tuple[int, int, int]]) -> "_Counts":
        start, records, bad = np.array(windows, np.int64).reshape(-1, 3).T
        return cls(start, *(np.concatenate([[0], column.cumsum()]) for column in (records, bad)))

    def within(self, first: int, until: int) -> BudgetUse:
        low, high = np.searchsorted(self.start, (first, until))
        return BudgetUse(int(self.records[high] - self.records[low]), int(self.bad[high] - self.bad[low]))


class _Sizes(NamedTuple):
    """Base windows and those of `long_s`."""

    short: _Counts
    long: _Counts
    long_s: int

    def spent(self, length: int, until: int) -> BudgetUse:
        """Within so many seconds before `until`; long times as the job reads them."""
        if length <= FINE_S:
            return self.short.within(until - length, until)
        running = until // self.long_s * self.long_s
        long, short = self.long.within(until - length, running), self.short.within(running, until)
        return BudgetUse(long.records + short.records, long.bad + short.bad)


class _Burn(NamedTuple):
    """A pair of windows that burned, and what was spent by then."""

    pair: BurnWindow
    spent: Mapping[int, BudgetUse]
    until: int


def simulate_error_budget(
    database: Database,
    metrics: Mapping[str, MetricRef],
    rules: RuleSettings,
    windows: WindowSettings,
    first: int,
    until: int,
) -> Iterator[SimulatedProblem]:
    """What they would have raised in (first, until], seconds since 1970; what was spent before counts too."""
    for objective in (one for one in rules.objectives if one.enabled):
        metric = metrics[objective.metric]
        for key, sizes in _counts(database, objective, metric, windows, first, until).items():
            if rules.objective(objective.name, key.app) is objective:
                simulation = _simulate(objective, key, sizes, rules.of(key.app), windows, range(first, until))
                yield from simulation.simulated_problems(partial(_detection, database, key, objective, metric, rules))


def _simulate(
    objective: Objective, key: ProblemKey, sizes: _Sizes, own: RuleSettings, windows: WindowSettings, span: range
) -> ProblemSimulation[_Burn]:
    pairs = burn_windows(objective.period_days * DAY_S, windows)
    lengths = lookbacks(objective, pairs)
    simulation: ProblemSimulation[_Burn] = ProblemSimulation(key, "slo_burn", own)
    for at in range(span.start + windows.base_s, span.stop + 1, windows.base_s):
        spent = {length: sizes.spent(length, at) for length in lengths}
        pair = fastest_burn(pairs, spent, objective, own.min_sample)
        if pair is not None and not within_noise(spent[pair.long_s], objective, own.chance):
            simulation.detect(at, _Burn(pair, spent, at))
        elif simulation.is_open and not fastest_burn(pairs, spent, objective, own.min_sample, CLEAR_FRACTION):
            simulation.clear(at)
    return simulation


def _detection(
    database: Database, key: ProblemKey, objective: Objective, metric: MetricRef, rules: RuleSettings, burn: _Burn
) -> Detection:
    return detection_of(database, key, objective, metric, burn.pair, burn.spent, rules, burn.until)


def _counts(
    database: Database, objective: Objective, metric: MetricRef, windows: WindowSettings, first: int, until: int
) -> dict[ProblemKey, _Sizes]:
    long_s = hour_s(windows)
    begin = first // long_s * long_s
    app = "" if objective.app is None else f"AND app = {sql.text(objective.app)}"
    rows = database.rows(
        f"""
        SELECT app, environment, arraySort(groupArrayIf((at, n, wrong), size_s = {windows.base_s})) AS short,
            arraySort(groupArrayIf((at, n, wrong), size_s = {long_s})) AS long
        FROM (
            SELECT app, environment, size_s, toUnixTimestamp(start) AS at, sum(scored) AS n,
                sum({count_out_of_bounds(*bin_bounds(metric.scale, *objective.bounds(metric.metric)))}) AS wrong
            FROM windows FINAL
            WHERE run_id = 'live' AND metric = {sql.text(objective.metric)} AND segment = '' {app} AND (
                (size_s = {windows.base_s} AND start >= toDateTime({begin - FINE_S}, 'UTC')) OR
                (size_s = {long_s} AND start >= toDateTime({max(begin - objective.period_days * DAY_S, 0)}, 'UTC'))
            ) AND start < toDateTime({until}, 'UTC')
            GROUP BY app, environment, size_s, at
        ) GROUP BY app, environment ORDER BY app, environment"""
    )
    return {
        key_of_objective(objective, row["app"], row["environment"]): _Sizes(
            _Counts.of(row["short"]), _Counts.of(row["long"]), long_s
        )
        for row in rows
    }
