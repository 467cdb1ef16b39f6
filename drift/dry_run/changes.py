"""Tries settings of detectors on past windows: states begin empty, and baselines are learned of the time before.

The job's own look goes through the time hour by hour; what it would have told is asked after each of its ticks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

import numpy as np

from drift.dry_run.changes_told import Alarms, Days
from drift.dry_run.would_be import WouldBe
from drift.leadership import Term
from drift.settings import DriftSettings, RuleSettings, WindowSettings
from drift.watching import grid
from drift.watching.daily import Daily
from drift.watching.daily_told import DailyTeller
from drift.watching.look import Look, Looked, Progress
from drift.watching.reference import References, in_trouble, references
from drift.watching.remembered import Remembered
from drift.watching.seen import Seen
from drift.watching.telling import Teller
from drift.windows.segments import SegmentValues
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database

NOBODY = Term(0, grid.time(0))  # nothing that is told here is stored


@dataclass(frozen=True, slots=True)
class _Past:
    """Bearings at a moment that is over: all lanes are closed up to it. Of each tick it keeps what matters to alarms.

    `whole`: where alarms are believed by all series together, of those that are in none too.
    """

    database: Database
    lanes: frozenset[str]
    whole: bool
    kept: Remembered = field(default_factory=Remembered)
    ticks: dict[int, list[Seen]] = field(default_factory=dict)

    def closed(self, now: datetime) -> Mapping[str, datetime]:
        """Up to then."""
        return dict.fromkeys(self.lanes, now)

    def references(self, now: datetime) -> References:
        """What people had said by then."""
        return references(self.database, now)

    def saw(self, seen: Seen) -> None:
        """Copied are series in alarm, or all of the batch where others count too."""
        on = seen.batch.rows.state.alarms.on
        if self.whole or seen.batch.key.of_successors:
            self.ticks.setdefault(seen.batch.until, []).append(seen.copy(np.arange(len(on))))
        elif on.any():
            self.ticks.setdefault(seen.batch.until, []).append(seen.copy(np.flatnonzero(on)))

    def told(self, first: int, until: int) -> dict[int, Looked]:
        """Of each tick that ended in (first, until] what was kept; nothing is from then on."""
        found = {}
        for at, some in self.ticks.items():
            if first < at <= until:
                seen = tuple(one for one in some if not one.batch.key.of_successors)
                compared = tuple(one for one in some if one.batch.key.of_successors)
                found[at] = Looked(seen, 0, 0, compared)
        self.ticks.clear()
        return found


def try_changes(
    database: Database,
    evaluators: Mapping[str, Evaluator],
    settings: DriftSettings,
    rules: RuleSettings,
    windows: WindowSettings,
    segments: SegmentValues,
    first: int,
    until: int,
    progress: Progress,
) -> Iterator[WouldBe]:
    """What would have been raised in (first, until], seconds since 1970; `progress` is told how many hours are done.

    Of problems by which a history is no example those that were raised count, of people's words what was said by then.
    """
    lanes = frozenset(one.lane for one in evaluators.values())
    past = _Past(database, lanes, settings.fleet_run_days is not None)
    look = Look(database, evaluators, windows, settings, past)
    teller = Teller(database, rules, settings, look.watched, segments, NOBODY)
    alarms, days = Alarms(teller), Days()

    def daily(at: int) -> DailyTeller:
        known = Daily(database, in_trouble(database), past.references(grid.time(at)), windows, settings)
        return DailyTeller(database, known, rules, look.watched, segments, NOBODY, look.span_s)

    stops = stops_of(first, until, look.tick_s)
    for done, (before, stop) in enumerate(pairwise(stops)):
        looked = look.run(grid.time(stop))
        told = past.told(before, stop)
        for at in range(before + look.tick_s, stop + 1, look.tick_s):
            alarms.hear(told.get(at, Looked((), 0, 0)), at)
        days.hear(daily(stop), looked, stop)
        progress(done + 1, len(stops) - 1)
    yield from alarms.would_be()
    yield from days.would_be(daily(until))


def stops_of(first: int, until: int, tick_s: int) -> Sequence[int]:
    """The ends of whole hours in (first, until], seconds since 1970, and both ends, the first one twice: that look has
    all before it.
    """
    begin, end = grid.floor(first, tick_s), grid.floor(until, tick_s)
    hours = range(grid.ceiling(begin + 1, grid.HOUR_S), end, grid.HOUR_S)
    return [begin, begin, *hours, end] if begin < end else []
