"""Tries settings of detectors on what users asked: references are learned of the days before, as the job would have."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import pairwise

from drift.dry_run.changes import NOBODY, stops_of
from drift.dry_run.looks import Looks
from drift.dry_run.would_be import WouldBe
from drift.problems.events import Place
from drift.problems.troubles import Trouble
from drift.questions.learning import TICK_S
from drift.questions.lots import Asked, asked_lately
from drift.questions.memory import Memory
from drift.questions.running import FORGOTTEN_S, Runner
from drift.questions.telling import onset, place_of
from drift.questions.watching import KIND, QuestionWatch, trouble_of
from drift.settings import DriftSettings, RuleSettings, WindowSettings
from drift.watching import grid
from drift.watching.look import Progress
from drift.watching.reference import references
from sinks.clickhouse.database import Database

_Evidence = tuple[Runner, Memory, datetime]  # since when there is trouble


def try_questions(
    database: Database,
    settings: DriftSettings,
    rules: RuleSettings,
    windows: WindowSettings,
    first: int,
    until: int,
    progress: Progress,
) -> Iterator[WouldBe]:
    """What would have been raised in (first, until], seconds since 1970; `progress` is told how many hours are done."""
    watch = QuestionWatch(database, settings, rules, windows, NOBODY)
    remembered = _Remembered(rules)
    stops = stops_of(first, until, TICK_S)
    for done, (before, stop) in enumerate(pairwise(stops)):
        said = references(database, grid.time(stop))
        found = asked_lately(database, grid.time(stop - grid.DAY_S), grid.time(stop))
        lately = [asked for asked in found if watch.watches(asked)]
        for asked in lately:
            remembered.ask(watch.runner(asked, said), before, stop)
        remembered.forget({place_of(asked) for asked in lately}, stop)
        progress(done + 1, len(stops) - 1)
    for one in remembered.looks.values():
        yield from one.would_be(partial(_told, rules))


@dataclass(slots=True)
class _Remembered:
    """What the job keeps in tables: memories, and problems."""

    rules: RuleSettings
    looks: dict[Place, Looks[_Evidence]] = field(default_factory=dict)
    _memories: dict[Asked, Memory] = field(default_factory=dict)

    def ask(self, runner: Runner, first: int, until: int) -> None:
        """An application's questions of [first, until) are looked at: tick by tick where something is amiss at one end
        only, else all at once.

        Nothing is told of the moment `first` itself.
        """
        before = self._memories.get(runner.asked)
        kept = deepcopy(before)
        after = runner.advance(before, until)
        if _is_amiss(kept) != _is_amiss(after):
            for at in range(first + TICK_S, until + 1, TICK_S):
                kept = runner.advance(kept, at)
                self._hear(runner, kept, at)
        elif first < until:
            self._hear(runner, after, until)
        if after is not None:
            self._memories[runner.asked] = after

    def _hear(self, runner: Runner, memory: Memory | None, at: int) -> None:
        place = place_of(runner.asked)
        own = self.looks.get(place)
        if memory is not None and memory.amiss:
            own = own or self.looks.setdefault(place, Looks(place, KIND, self.rules.of(place.app)))
            since = grid.time(onset(memory))
            if own.stands:
                since = min(since, own.last[own.episodes[-1].episode][2])
            own.sees(at, (runner, deepcopy(memory), since))
        elif own is not None:
            own.sees_none(at)

    def forget(self, lately: set[Place], at: int) -> None:
        """Problems of who asks nothing for so long that nothing is remembered are over."""
        kept = {place_of(asked) for asked, memory in self._memories.items() if at - memory.until < FORGOTTEN_S}
        for place in self.looks.keys() - lately - kept:
            self.looks[place].sees_none(at)


def _is_amiss(memory: Memory | None) -> bool:
    return memory is not None and memory.amiss


def _told(rules: RuleSettings, evidence: _Evidence) -> Trouble:
    runner, memory, since = evidence
    return trouble_of(runner, memory, since, rules)
