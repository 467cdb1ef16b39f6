"""Tries objectives on past windows: whether a budget burns is asked whenever a base window ended, as jobs ask it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from drift.detectors.series import Integers
from drift.dry_run.looks import Looks
from drift.dry_run.would_be import WouldBe
from drift.kinds.slo_burn import (
    DAY_S,
    FINE_S,
    RELIEF,
    Pair,
    Spent,
    burning,
    hour_s,
    lengths_of,
    may_be_chance,
    pairs_of,
    place_of,
    trouble_of,
)
from drift.problems.events import Place
from drift.problems.troubles import Trouble
from drift.settings import Objective, RuleSettings, WindowSettings
from drift.windows import sql
from drift.windows.beyond import edges, in_bins
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database


@dataclass(frozen=True, slots=True)
class _Counts:
    """Windows of one size in order of time: their starts, and up to each the records and the wrong ones before it."""

    start: Integers
    records: Integers
    wrong: Integers

    @classmethod
    def of(cls, windows: Sequence[tuple[int, int, int]]) -> "_Counts":
        start, records, wrong = np.array(windows, np.int64).reshape(-1, 3).T
        return cls(start, *(np.concatenate([[0], column.cumsum()]) for column in (records, wrong)))

    def within(self, first: int, until: int) -> Spent:
        low, high = np.searchsorted(self.start, (first, until))
        return Spent(int(self.records[high] - self.records[low]), int(self.wrong[high] - self.wrong[low]))


class _Sizes(NamedTuple):
    """Base windows and those of `long_s`."""

    short: _Counts
    long: _Counts
    long_s: int

    def spent(self, length: int, until: int) -> Spent:
        """Within so many seconds before `until`; long times as the job reads them."""
        if length <= FINE_S:
            return self.short.within(until - length, until)
        running = until // self.long_s * self.long_s
        long, short = self.long.within(until - length, running), self.short.within(running, until)
        return Spent(long.records + short.records, long.wrong + short.wrong)


class _Burn(NamedTuple):
    """A pair of windows that burned, and what was spent by then."""

    pair: Pair
    spent: Mapping[int, Spent]
    until: int


def try_objectives(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    windows: WindowSettings,
    first: int,
    until: int,
) -> Iterator[WouldBe]:
    """What they would have raised in (first, until], seconds since 1970; what was spent before counts too."""
    for objective in (one for one in rules.objectives if one.enabled):
        metric = metrics[objective.metric]
        for place, sizes in _counts(database, objective, metric, windows, first, until).items():
            if rules.objective(objective.name, place.app) is objective:
                looks = _looks(objective, place, sizes, rules.of(place.app), windows, range(first, until))
                yield from looks.would_be(partial(_told, database, place, objective, metric, rules))


def _looks(
    objective: Objective, place: Place, sizes: _Sizes, own: RuleSettings, windows: WindowSettings, span: range
) -> Looks[_Burn]:
    pairs = pairs_of(objective.period_days * DAY_S, windows)
    lengths = lengths_of(objective, pairs)
    looks: Looks[_Burn] = Looks(place, "slo_burn", own)
    for at in range(span.start + windows.base_s, span.stop + 1, windows.base_s):
        spent = {length: sizes.spent(length, at) for length in lengths}
        pair = burning(pairs, spent, objective, own.min_sample)
        if pair is not None and not may_be_chance(spent[pair.long_s], objective, own.chance):
            looks.sees(at, _Burn(pair, spent, at))
        elif looks.is_going and not burning(pairs, spent, objective, own.min_sample, RELIEF):
            looks.sees_none(at)
    return looks


def _told(
    database: Database, place: Place, objective: Objective, metric: WatchedMetric, rules: RuleSettings, burn: _Burn
) -> Trouble:
    return trouble_of(database, place, objective, metric, burn.pair, burn.spent, rules, burn.until)


def _counts(
    database: Database, objective: Objective, metric: WatchedMetric, windows: WindowSettings, first: int, until: int
) -> dict[Place, _Sizes]:
    long_s = hour_s(windows)
    begin = first // long_s * long_s
    app = "" if objective.app is None else f"AND app = {sql.text(objective.app)}"
    rows = database.rows(
        f"""
        SELECT app, environment, arraySort(groupArrayIf((at, n, wrong), size_s = {windows.base_s})) AS short,
            arraySort(groupArrayIf((at, n, wrong), size_s = {long_s})) AS long
        FROM (
            SELECT app, environment, size_s, toUnixTimestamp(start) AS at, sum(scored) AS n,
                sum({in_bins(*edges(metric.scale, *objective.lines(metric.metric)))}) AS wrong
            FROM windows FINAL
            WHERE run_id = 'live' AND metric = {sql.text(objective.metric)} AND segment = '' {app} AND (
                (size_s = {windows.base_s} AND start >= toDateTime({begin - FINE_S}, 'UTC')) OR
                (size_s = {long_s} AND start >= toDateTime({max(begin - objective.period_days * DAY_S, 0)}, 'UTC'))
            ) AND start < toDateTime({until}, 'UTC')
            GROUP BY app, environment, size_s, at
        ) GROUP BY app, environment ORDER BY app, environment"""
    )
    return {
        place_of(objective, row["app"], row["environment"]): _Sizes(
            _Counts.of(row["short"]), _Counts.of(row["long"]), long_s
        )
        for row in rows
    }
