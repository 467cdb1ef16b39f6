"""Schedule of faults, in seconds after the first score: a pure function of fault and seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from ragtide.stream.demo.faults import FAULTS, Fault

FIRST_S = 30.0
LASTS_S = 45.0
HEALTHY_S = 60.0  # after a fault: long enough for its problem to be resolved before the next
_JITTER_S = 20.0


@dataclass(frozen=True, slots=True)
class Episode:
    """`fault` is on from `start_s` (inclusive) to `end_s` (exclusive)."""

    fault: Fault
    start_s: float
    end_s: float


class Schedule:
    """Episodes without end, one at a time, never before `FIRST_S`.

    Without a seed the first is on from 30 to 75 s and the faults come in the order of their table; a seed shuffles
    them and delays each by up to 20 s. With `fault` every episode is that one.
    """

    def __init__(self, fault: str | None = None, seed: int | None = None) -> None:
        self._fault = fault
        self._seed = seed

    def episodes(self) -> Iterator[Episode]:
        """From the first on, in order of time."""
        rng = None if self._seed is None else random.Random(f"schedule {self._seed}")
        faults = [FAULTS[self._fault]] if self._fault else list(FAULTS.values())
        start = FIRST_S
        while True:
            if rng:
                rng.shuffle(faults)
            for fault in faults:
                begins = start + (rng.uniform(0, _JITTER_S) if rng else 0.0)
                yield Episode(fault, begins, begins + LASTS_S)
                start = begins + LASTS_S + HEALTHY_S

    def at(self, elapsed_s: float) -> Episode | None:
        """The episode that is on, if any."""
        episode = next(episode for episode in self.episodes() if elapsed_s < episode.end_s)
        return episode if elapsed_s >= episode.start_s else None
