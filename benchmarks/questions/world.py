"""What users of a simulated application ask, as vectors: topics that breathe with the hour, the weekend and the day.

Half of the questions are of 200 that are asked again and again, the first of them most. Now and then a client asks one
question many times within minutes. Nothing of that is drift; a `change` is: a share of what is asked is of a topic that
nobody asked about before.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from ragtide.drift.array_types import Floats, Integers, Numbers
from ragtide.drift.input_drift.source import EMPTY, QuestionSample, QuestionSource, concatenate
from ragtide.evaluators.spec import Vectors

HOUR_S, DAY_S = 3600, 86_400
START = 20_003 * DAY_S  # a Monday; what comes before is history
_FAQ = 200
_EAGER = 0.05  # of the hours
_KEPT_HOURS = 1_000

Change = Callable[[int], float]


def steady(_: int) -> float:
    """Nothing changes."""
    return 0.0


@dataclass
class World:
    """Draws random samples of questions; `change`: the share of the new topic by seconds since `start`, a Monday.

    Worlds that differ in `start` alone have the same questions that much later.
    """

    seed: int
    change: Change = steady
    an_hour: float = 200.0
    dimension: int = 48
    topics: int = 15
    repeated: float = 0.5
    start: int = START
    _hours: dict[int, QuestionSample] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self._centres = self._anywhere(self.topics + 1, rng)
        self._shares: Floats = rng.dirichlet(np.full(self.topics, 1.5))
        self._phase, self._swing = rng.uniform(0, 24, self.topics), rng.uniform(0, 0.7, self.topics)
        self._weekend = rng.normal(0, 0.4, self.topics)
        self._often = self._about(rng.choice(self.topics, _FAQ, p=self._shares), rng)

    def sample(self, asked: QuestionSource, since: int, until: int, every_s: int, most: int) -> QuestionSample:
        """See `ragtide.drift.input_drift.source.QuestionStore`."""
        first, end = since // HOUR_S, -(-until // HOUR_S)
        some = concatenate(self._hour(hour) for hour in range(first, end))
        some = some.select((some.at >= since) & (some.at < until))
        by_lot = np.array([crc32(id_.encode()) for id_ in some.trace_ids], np.int64)
        drawn = np.lexsort((by_lot, some.at // every_s))
        stretch = (some.at // every_s)[drawn]
        rank = np.arange(len(stretch)) - np.searchsorted(stretch, stretch)
        return some.select(np.sort(drawn[rank < most]))

    def _hour(self, hour: int) -> QuestionSample:
        if hour not in self._hours:
            number = hour - (self.start - START) // HOUR_S
            if len(self._hours) > _KEPT_HOURS:
                self._hours.clear()
            self._hours[hour] = self._asked(hour, number, np.random.default_rng([self.seed, number]))
        return self._hours[hour]

    def _asked(self, hour: int, number: int, rng: np.random.Generator) -> QuestionSample:
        day = number // 24
        weekend = (day + 3) % 7 >= 5
        expected = self.an_hour * (1 + 0.7 * np.sin(2 * np.pi * (hour % 24 - 9) / 24)) * (0.5 if weekend else 1)
        n = int(rng.poisson(expected * np.exp(rng.normal(0, 0.15))))
        if not n:
            return EMPTY
        vectors = self._about(rng.choice(self.topics, n, p=self._mix(hour, day, weekend)), rng)
        again = rng.random(n) < self.repeated
        vectors[again] = self._often[rng.choice(_FAQ, int(again.sum()), p=_popularity())]
        if rng.random() < _EAGER:
            first = int(rng.integers(n))
            vectors[first : first + int(rng.integers(5, 30))] = vectors[first]
        new = rng.random(n) < self.change(hour * HOUR_S - self.start)
        vectors[new] = self._about(np.full(int(new.sum()), self.topics), rng)
        at = np.sort(rng.integers(hour * HOUR_S, (hour + 1) * HOUR_S, n))
        ids = tuple(f"{'new' if one else 'old'}-{number}-{i}" for i, one in enumerate(new))
        return QuestionSample(at, ids, ("",) * n, vectors)

    def _mix(self, hour: int, day: int, weekend: bool) -> Floats:
        log = np.log(self._shares) + self._swing * np.sin(2 * np.pi * (hour % 24 - self._phase) / 24)
        log += self._weekend * weekend + np.random.default_rng([self.seed, 1, day]).normal(0, 0.1, self.topics)
        weights: Floats = np.exp(log) / np.exp(log).sum()
        return weights

    def _about(self, topics: Integers, rng: np.random.Generator) -> Vectors:
        return _unit(self._centres[topics] + 0.8 * self._anywhere(len(topics), rng))

    def _anywhere(self, n: int, rng: np.random.Generator) -> Floats:
        """Directions that differ in few dimensions much, in most a little, as questions do."""
        spectrum = np.arange(1, self.dimension + 1) ** -0.5
        found: Floats = rng.normal(size=(n, self.dimension)) * spectrum / np.sqrt((spectrum**2).sum())
        return found


def _popularity() -> Floats:
    weights: Floats = 1 / np.arange(1, _FAQ + 1)
    return np.asarray(weights / weights.sum(), np.float64)


def _unit(vectors: Numbers) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)
