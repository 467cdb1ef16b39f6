"""The runtime that a clock says is faster runs the model, within a bounded time, and is remembered."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import numpy as np
import pytest

from ragtide.evaluators.runtime.batches import PaddedBatch
from ragtide.evaluators.runtime.fastest import BUDGET_S, LENGTHS, ROUNDS, fastest
from ragtide.evaluators.spec import Vectors

_names = count()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Timed:
    """A runtime whose passes take as long as its costs say, one after the other; the last goes on."""

    batch_tokens = 256

    def __init__(self, clock: Clock, *costs: float) -> None:
        self._clock = clock
        self._costs = costs
        self.shapes: list[tuple[int, ...]] = []

    def run(self, batches: Iterator[PaddedBatch]) -> Vectors:
        for batch in batches:
            self._clock.now += self._costs[min(len(self.shapes), len(self._costs) - 1)]
            self.shapes.append(batch.ids.shape)
        return np.zeros((1, 1), np.float32)


def _made(runtime: Timed) -> Timed:
    return runtime


def choose(
    clock: Clock, made: dict[str, Timed], model: str | None = None, longest: Callable[[Timed], int] = lambda _: 512
) -> str:
    name, runtime = fastest(
        model or f"model-{next(_names)}",
        None,
        {name: partial(_made, one) for name, one in made.items()},
        longest,
        clock,
    )
    assert runtime is made[name]
    return name


def test_the_faster_one_wins_by_its_best_passes(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    slow_to_start, steady = Timed(clock, 0.2, 0.2, 0.01), Timed(clock, 0.02)
    with caplog.at_level(logging.INFO, "ragtide.evaluators.runtime.fastest"):
        assert choose(clock, {"steady": steady, "slow to start": slow_to_start}) == "slow to start"
    assert len(steady.shapes) == len(slow_to_start.shapes) == len(LENGTHS) * ROUNDS
    assert "runs on slow to start: steady 40 ms, slow to start 20 ms" in caplog.text


def test_measuring_ends_when_its_time_is_up_and_compares_the_same_passes() -> None:
    clock = Clock()
    one, other = Timed(clock, 0.9), Timed(clock, 0.8)
    assert choose(clock, {"one": one, "other": other}) == "other"
    assert len(one.shapes) == len(other.shapes) == 1
    assert clock.now < BUDGET_S + 0.9 + 0.8


def test_of_equals_the_first_is_taken_and_one_alone_is_not_measured() -> None:
    clock = Clock()
    assert choose(clock, {"a": Timed(clock, 0.1), "b": Timed(clock, 0.1)}) == "a"
    alone = Timed(clock, 0.1)
    assert choose(clock, {"alone": alone}) == "alone"
    assert alone.shapes == []


def test_no_window_is_longer_than_the_model_reads() -> None:
    clock = Clock()
    one, other = Timed(clock, 0.01), Timed(clock, 0.02)
    choose(clock, {"one": one, "other": other}, longest=lambda runtime: 40 if runtime is one else 100)
    assert {length for _, length in one.shapes} == {32, 40}


def test_what_was_measured_is_remembered() -> None:
    clock = Clock()
    assert choose(clock, {"one": Timed(clock, 0.2), "other": Timed(clock, 0.1)}, "known") == "other"
    faster_now = Timed(clock, 0.01)
    assert choose(clock, {"one": faster_now, "other": Timed(clock, 0.1)}, "known") == "other"
    assert faster_now.shapes == []
    assert choose(clock, {"one": faster_now}, "known") == "one", "where it cannot run any more"
