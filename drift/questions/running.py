"""Looks at an application's questions tick by tick, and at each whole day: run in many pieces, it ends as in one.

References are learned when a day begins, of what was known then: at first every day, then once a week, and never while
something is amiss, so that no trouble becomes what is usual unless a person says so.
"""

from dataclasses import dataclass, replace

import numpy as np

from drift.detectors import categories, watching
from drift.detectors.baseline import Baseline
from drift.detectors.series import Integers
from drift.questions.comparing import MARGIN, Compared, alike, compared, is_unlike
from drift.questions.learning import DAY_QUESTIONS, TICK_QUESTIONS, TICK_S, Learner, counted
from drift.questions.lots import Asked, Lot
from drift.questions.memory import Memory
from drift.questions.two_samples import LEAST
from drift.watching import grid
from drift.watching.reference import Pin

_RENEWED_DAYS = 7
FORGOTTEN_S = 7 * grid.DAY_S  # after which nobody makes up for what was not looked at


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs for one application; `pin` and `basis` are what people said its reference rests on.

    `margin`: so many times as great as what is nobody's business must a change be.
    """

    learner: Learner
    asked: Asked
    pin: Pin | None
    basis: int
    margin: float = 1.0

    def advance(self, memory: Memory | None, end: int) -> Memory | None:
        """As it is once all ticks before `end` were looked at; None where there is nothing to compare with yet."""
        if memory is None or end - memory.until >= FORGOTTEN_S:
            memory = self._learned(grid.floor(end, grid.DAY_S), np.empty(0, np.int64))
        elif memory.reference.basis != self.basis:
            memory = self._learned(memory.until, np.empty(0, np.int64)) or memory
        while memory is not None and memory.until < end:
            memory = self._renewed(memory)
            stop = min(end, grid.ceiling(memory.until + 1, grid.DAY_S))
            self._look(memory, stop)
            if stop % grid.DAY_S == 0:
                self._judge(memory, stop - grid.DAY_S)
        return memory

    def day(self, memory: Memory, day: int) -> Compared:
        """The day that began then against days of its kind."""
        old = self.learner.example(self.asked, memory.reference, day)
        return compared(self._asked(day), old, memory.reference.rhythm)

    def lately(self, memory: Memory, since: int) -> Compared:
        """What was asked from then on, a day at most, against days of the same kind."""
        first = max(grid.floor(since, TICK_S), memory.until - grid.DAY_S)
        new = self.learner.questions.lot(self.asked, first, memory.until, TICK_S, TICK_QUESTIONS)
        chosen = np.random.default_rng(first).permutation(len(new.at))[:DAY_QUESTIONS]
        reference = memory.reference
        old = self.learner.example(self.asked, reference, grid.floor(memory.until - 1, grid.DAY_S))
        return compared(new.where(np.sort(chosen)), old, reference.rhythm)

    def _asked(self, day: int) -> Lot:
        return self.learner.questions.lot(self.asked, day, day + grid.DAY_S, grid.DAY_S, DAY_QUESTIONS)

    def _learned(self, at: int, troubled: Integers) -> Memory | None:
        reference = self.learner.learned(self.asked, at, self.pin, self.basis, troubled)
        return None if reference is None else Memory.begun(reference, at, troubled)

    def _renewed(self, memory: Memory) -> Memory:
        """With a new reference where it is time for one."""
        reference = memory.reference
        age = memory.until - reference.learned
        young = reference.learned - reference.since < _RENEWED_DAYS * grid.DAY_S
        due = age >= (1 if young else _RENEWED_DAYS) * grid.DAY_S and memory.until % grid.DAY_S == 0
        if self.pin is not None or not due or memory.amiss:
            return memory
        oldest = memory.until - self.learner.history_days * grid.DAY_S
        return self._learned(memory.until, memory.troubled[memory.troubled >= oldest]) or memory

    def _look(self, memory: Memory, stop: int) -> None:
        some = self.learner.questions.lot(self.asked, memory.until, stop, TICK_S, TICK_QUESTIONS)
        start = np.arange(memory.until, stop, TICK_S)
        ticks = counted(some, memory.reference.groups, start)
        seen = categories.run(self._judging(memory), memory.state, ticks)
        memory.until = stop
        _note(memory, start[seen.alarm[0]])

    def _judge(self, memory: Memory, day: int) -> None:
        """Few questions change nothing; where the reference's vectors have expired, shares alone speak."""
        reference, asked = memory.reference, self._asked(day)
        if len(asked.at) < LEAST:
            return
        usual = reference.usual[alike(reference.days, day)] if reference.rhythm else reference.usual
        found = compared(asked, self.learner.example(self.asked, reference, day), reference.rhythm)
        memory.unlike = bool(is_unlike(found.apart, usual, self.margin * MARGIN, memory.unlike))
        if memory.unlike:
            _note(memory, np.array([day]))
        if memory.alarm and _is_over(memory, self._judging(memory), asked, day):
            memory.restart()

    def _judging(self, memory: Memory) -> Baseline:
        """The reference's baseline with the margin that settings ask for; it is learned, and stored, with its own."""
        found = memory.reference.baseline
        return replace(found, margin=found.margin * self.margin, near=found.near * self.margin)


def _is_over(memory: Memory, baseline: Baseline, asked: Lot, day: int) -> bool:
    """Whether the group in alarm had its usual share, or nearly, on a whole day after the alarm's onset.

    The detector itself wants two dozen means that say something: of a group of 1 in 100, of thousands of questions.
    """
    reading, groups = watching.read(baseline, memory.state), memory.reference.groups
    channel, shift = int(reading.channel[0]), float(reading.shift[0])
    if reading.onset[0] > day or channel > groups.none:
        return False
    share = float((groups.of(asked.vectors) == channel).mean())
    allowed = max(float(baseline.near[0, channel]), abs(shift) / 2)
    return int(reading.direction[0]) * (share - float(reading.expected[0])) <= allowed


def _note(memory: Memory, times: Integers) -> None:
    """The days of these times are no example."""
    memory.troubled = np.unique(np.concatenate([memory.troubled, times // grid.DAY_S * grid.DAY_S]))
