"""How many of something there were by time, asked for many stretches of time at once. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from drift.detectors.series import Integers


@dataclass(frozen=True, slots=True)
class Counts:
    """Times in order, and up to each how many there were before it."""

    at: Integers
    before: Integers

    @classmethod
    def of(cls, some: Iterable[tuple[int, int]]) -> "Counts":
        """From times, in order, with how many there were at each."""
        at, counts = np.array(list(some), np.int64).reshape(-1, 2).T
        return cls(at, np.concatenate([[0], counts.cumsum()]))

    def within(self, first: Integers, until: Integers) -> Integers:
        """In each [first, until)."""
        found: Integers = self.before[np.searchsorted(self.at, until)] - self.before[np.searchsorted(self.at, first)]
        return found
