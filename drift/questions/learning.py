"""Learns how an application's questions are asked: which groups there are, their usual shares, how much days differ."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drift.detectors import categories
from drift.detectors.season import HOUR_S
from drift.detectors.series import Categories, Integers
from drift.questions.clusters import Groups, groups_of
from drift.questions.comparing import alike, usual_areas
from drift.questions.lots import Asked, Lot, Questions, joined
from drift.questions.memory import Reference
from drift.questions.two_samples import same_questions
from drift.watching import grid
from drift.watching.reference import Pin
from sinks.rows import LIVE

TICK_S = HOUR_S // 4
TICK_QUESTIONS = 60  # of a tick that are looked at
DAY_QUESTIONS = 1_000  # of a day that are compared with those of others
_GROUPED = 5_000  # of a reference that groups are found among
_DAYS_AT_ONCE = 4  # whose ticks are in memory: 35 MB of vectors of 384 numbers
_LONGEST_DAYS = 28  # of what is pinned the end counts
_SEED = 1


@dataclass(frozen=True, slots=True)
class Learner:
    """Learns from live history of so many days, or from what a person pinned."""

    questions: Questions
    history_days: int

    def learned(self, asked: Asked, at: int, pin: Pin | None, basis: int, troubled: Integers) -> Reference | None:
        """What holds from `at` on; None where nothing was asked that it could be learned from.

        `troubled`: days that are no example; nothing before a `basis` above 0 is.
        """
        if pin is None:
            since, until, run_id = max(at - self.history_days * grid.DAY_S, basis), at, LIVE
        else:
            until, run_id = int(pin.until.timestamp()), pin.run_id
            since = max(int(pin.since.timestamp()), until - _LONGEST_DAYS * grid.DAY_S)
        days = np.arange(grid.floor(since, grid.DAY_S), grid.ceiling(until, grid.DAY_S), grid.DAY_S)
        days = days if pin is not None else days[~np.isin(days, troubled)]
        source = asked._replace(run_id=run_id)
        lots = self._days(source, days, since, until)
        groups = self._groups(lots)
        if groups is None:
            return None
        baseline = categories.fit(self._history(source, groups, days, since, until), seasonal=run_id == LIVE)
        usual = usual_areas(lots, days, run_id == LIVE)
        return Reference(groups, baseline, days, usual, since, until, at, basis, run_id)

    def example(self, asked: Asked, reference: Reference, day: int) -> Lot:
        """Questions of the reference's days of the same kind as the one that begins then."""
        source = asked._replace(run_id=reference.run_id)
        days = reference.days[alike(reference.days, day)] if reference.rhythm else reference.days
        return joined(self._days(source, days, reference.since, reference.until))

    def _days(self, asked: Asked, days: Integers, since: int, until: int) -> list[Lot]:
        """Questions of each of some days, ascending, that were asked in [since, until)."""
        if not len(days):
            return []
        first, end = int(days[0]), int(days[-1]) + grid.DAY_S
        some = _within(self.questions.lot(asked, first, end, grid.DAY_S, DAY_QUESTIONS), since, until)
        return [some.where(some.at // grid.DAY_S == day // grid.DAY_S) for day in days]

    def _groups(self, lots: Sequence[Lot]) -> Groups | None:
        vectors = joined(lots).vectors
        chosen = np.sort(np.random.default_rng(_SEED).permutation(len(vectors))[:_GROUPED])
        return groups_of(vectors[chosen], _SEED) if len(vectors) else None

    def _history(self, asked: Asked, groups: Groups, days: Integers, since: int, until: int) -> Categories:
        """Ticks from the first to the last day; those of days that are left out are empty."""
        start = np.arange(days[0], days[-1] + grid.DAY_S, TICK_S)
        counts = np.zeros((1, len(start), groups.none + 1))
        for first in range(int(days[0]), int(days[-1]) + grid.DAY_S, _DAYS_AT_ONCE * grid.DAY_S):
            end = min(first + _DAYS_AT_ONCE * grid.DAY_S, int(days[-1]) + grid.DAY_S)
            some = _within(self.questions.lot(asked, first, end, TICK_S, TICK_QUESTIONS), since, until)
            some = some.where(np.isin(some.at // grid.DAY_S, days // grid.DAY_S))
            counts += counted(some, groups, start).counts
        return Categories(start, counts)


def counted(some: Lot, groups: Groups, start: Integers) -> Categories:
    """How many different ones of these questions are in each group, and in none, in each tick.

    One that is asked again in the same tick counts once: an eager client says nothing of what users ask.
    """
    counts = np.zeros((1, len(start), groups.none + 1))
    if len(some.at):
        tick = (some.at - start[0]) // TICK_S
        first = np.unique(np.stack([tick, same_questions(some.vectors)]), axis=1, return_index=True)[1]
        np.add.at(counts[0], (tick[first], groups.of(some.vectors[first])), 1)
    return Categories(start, counts)


def _within(some: Lot, since: int, until: int) -> Lot:
    return some.where((some.at >= since) & (some.at < until))
