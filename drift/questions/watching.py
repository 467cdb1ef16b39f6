"""The job `questions`: does anybody ask otherwise than they used to? Problems open and are resolved accordingly."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from drift.detectors.baseline import Warming
from drift.job_runs import Stopped
from drift.leadership import Term
from drift.problems.events import Place
from drift.problems.problem import EventRow, Kind, Problem
from drift.problems.troubles import Over, Trouble, standing, tell
from drift.questions import memory as memories
from drift.questions.learning import TICK_S, Learner
from drift.questions.lots import Asked, StoredQuestions, asked_lately
from drift.questions.memory import Memory
from drift.questions.running import FORGOTTEN_S, Runner
from drift.questions.telling import METRIC, account, onset, place_of
from drift.rules.series import Series
from drift.settings import DriftSettings, RuleSettings, WindowSettings
from drift.watching import grid
from drift.watching.reference import References, references
from drift.windows import watermark
from sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)
KIND: Kind = "input_drift"
_LANE = "model"  # which stores the vectors


@dataclass(frozen=True, slots=True)
class Watched:
    """How many applications were looked at, why some of them are not watched yet, and what follows for problems."""

    applications: int
    warming: Mapping[str, str]
    events: list[EventRow]


@dataclass(frozen=True, slots=True)
class QuestionWatch:
    """Watches for one leader's term."""

    database: Database
    settings: DriftSettings
    rules: RuleSettings
    windows: WindowSettings
    term: Term

    def run(self, now: datetime, stopped: Callable[[], bool] = lambda: False) -> Watched:
        """Questions were looked at up to the watermark, and what follows is stored, when this returns.

        Raises `Stopped` after an application where `stopped` says so; nothing is told then, and the next run goes on.
        """
        closed = watermark.closed(self.database, self.windows, now).get(_LANE)
        if closed is None:
            return Watched(0, {}, [])
        end = grid.floor(closed.timestamp(), TICK_S)
        known, said = memories.read(self.database), references(self.database)
        before = {place: one for place, one in standing(self.database, KIND).items() if place.metric == METRIC}
        told: list[Trouble | Over] = []
        warming = {}
        found = asked_lately(self.database, grid.time(end - grid.DAY_S), grid.time(end))
        lately = [asked for asked in found if self.watches(asked)]
        known = {asked: memory for asked, memory in known.items() if self.watches(asked)}
        for done, asked in enumerate(lately, start=1):
            runner = self.runner(asked, said)
            memory = self._advanced(runner, known.get(asked), end)
            if why := Warming.NO_RECORDS.why if memory is None else memory.reference.baseline.reasons()[0]:
                warming[asked.app] = why
            told += self._told(runner, memory, before.get(place_of(asked)), end, now)
            if stopped():
                raise Stopped(f"questions of {done} of {len(lately)} applications were looked at")
        told += _forgotten(before, lately, known, end)
        events = tell(self.database, told, self.rules, self.term, now)
        for event in events:
            logger.info("problem %s %s: %s", event.problem_id, event.event, event.description)
        for app, why in sorted(warming.items()):
            logger.debug("questions of %s are not watched yet: %s", app, why)
        return Watched(len(lately), warming, events)

    def watches(self, asked: Asked) -> bool:
        """Whether questions of this application are looked at."""
        return self.settings.watches(asked.app, METRIC)

    def _advanced(self, runner: Runner, before: Memory | None, end: int) -> Memory | None:
        """After all ticks before `end`; stored where it is another than before."""
        position = None if before is None else (before.until, before.reference.basis)
        memory = runner.advance(before, end)
        if memory is not None and (memory.until, memory.reference.basis) != position:
            memories.keep(self.database, runner.asked, memory, self.term.next_version())
        return memory

    def runner(self, asked: Asked, said: References) -> Runner:
        """What looks at them, where people said that."""
        place = place_of(asked)
        series = Series(*(getattr(place, name) for name in Series._fields))
        learner = Learner(StoredQuestions(self.database), self.settings.history_days)
        return Runner(learner, asked, said.pin_of(series), said.basis(series), self.settings.of(asked.app).margin)

    def _told(
        self, runner: Runner, memory: Memory | None, before: Problem | None, end: int, now: datetime
    ) -> Sequence[Trouble | Over]:
        """One of them, or nothing where nothing is new."""
        place = place_of(runner.asked)
        if memory is None or not memory.amiss:
            return [] if before is None else [Over(place, KIND, grid.time(end))]
        if before is not None and now - before.last_seen_at < timedelta(seconds=self.rules.update_every_s):
            return []
        since = grid.time(onset(memory))
        if before is not None:
            since = min(since, datetime.fromisoformat(before.voices[KIND].attributes["since"]))
        return [trouble_of(runner, memory, since, self.rules)]


def trouble_of(runner: Runner, memory: Memory, since: datetime, rules: RuleSettings) -> Trouble:
    """What is said of questions with which something is amiss, since then."""
    began = onset(memory)
    found = runner.lately(memory, began) if memory.alarm else runner.day(memory, began)
    said = account(runner.asked, memory, found, since, rules, runner.margin)
    return Trouble(place_of(runner.asked), said, since, grid.time(memory.until))


def _forgotten(
    before: Mapping[Place, Problem], lately: Sequence[Asked], known: Mapping[Asked, Memory], end: int
) -> list[Over]:
    """Problems of who asks nothing for so long that nothing is remembered."""
    remembered = {place_of(asked) for asked in lately}
    remembered |= {place_of(asked) for asked, memory in known.items() if end - memory.until < FORGOTTEN_S}
    return [Over(place, KIND, grid.time(end)) for place in before if place not in remembered]
