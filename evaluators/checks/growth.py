"""Checks of time: no record within the budget may keep a worker busy for long.

Times are CPU times of the thread, in units of a fixed piece of work that is timed in the same process, so that a slow
machine slows both. Encoders and models are instant, and older objects are hidden from the garbage collector, so that
only the evaluator is timed.
"""

import gc
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf, log2

import msgspec
import numpy as np
from pydantic import BaseModel

from ragtide.evaluators.checks.dense_traces import dense_traces
from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.plan import PreparedEvaluator, models_of
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import lengths_in, regions_in, run_all, texts_of
from ragtide.evaluators.spec import Ask, Evaluator, ModelRef, Vectors
from ragtide.evaluators.trace import Trace

LIMIT = 40.0  # units for one record: about 2 s if the unit takes 50 ms
SMALL = LIMIT / 2  # below, any growth is fine: the evaluator may have limits of its own
GROWTH = 3.0  # maximum growth of time when a text doubles: 2 is linear, 4 quadratic
SLACK = 2.2  # maximum growth of linear time, with caches and the garbage collector
TINY = LIMIT / 1_000  # below, growth is noise of the machine
FIRST = 8_000  # characters
LARGEST = 8_000_000  # bytes of JSON: the default limit of ingest
NOISE = 1.5  # times as long as on a quiet machine: beyond, one more try is enough
TRIES = 6  # the best counts: other processes only add time


class ConstantEncoder:
    """An instant `Encoder`: every text has the same vector."""

    revision = "constant@1"
    dimension = 2

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, one row per text."""
        return np.tile(np.array([0.6, 0.8], np.float32), (len(texts), 1))

    def count_tokens(self, texts: Sequence[str]) -> int:
        """One for four characters."""
        return sum(map(len, texts)) // 4


class ConstantModel:
    """An instant `Model`: every answer is 0.5."""

    revision = "constant@1"

    def __init__(self, ref: ModelRef) -> None:
        self._columns = ref.columns

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        """One row per ask."""
        return np.full((len(asks), self._columns), 0.5, np.float32)


def growth_faults(evaluator: Evaluator, params: BaseModel) -> list[str]:
    """Find the first of the dense traces that takes too long, or far longer after it doubles."""
    prepared = PreparedEvaluator(evaluator, params, fingerprint="", tasks=())
    models = {ref: ConstantModel(ref) for ref in models_of(evaluator, params)}

    def units(trace: Trace) -> float:
        shared = Resources(ConstantEncoder(), models=models, judge=HashingJudge()).batch()
        gc.freeze()
        try:
            start = time.thread_time()
            run_all([prepared], [trace], shared)
            return (time.thread_time() - start) / _unit_s()
        finally:
            gc.unfreeze()

    found = ((name, _fault(evaluator, make, units)) for name, make in dense_traces())
    return next(([f"a trace full of {name} {fault}"] for name, fault in found if fault), [])


def _fault(evaluator: Evaluator, make: Callable[[int], Trace], units: Callable[[Trace], float]) -> str | None:
    """Double the trace until its time at the largest size is certain to be below the limit."""
    largest = _largest(evaluator, make(FIRST))
    size, before = min(FIRST, largest), 0.0
    while size:
        trace = make(size)
        took, tries = units(trace), 1
        while (took > LIMIT or (took > SMALL and took > GROWTH * before)) and tries < (
            TRIES if took < NOISE * LIMIT else 2
        ):
            took, tries = min(took, units(trace)), tries + 1
        if took > LIMIT:
            return f"takes {took / LIMIT:.1f} times as long as a record may, at {size:,} characters or less"
        if took > SMALL and before > TINY and took > GROWTH * before:
            return f"takes {took / before:.1f} times as long where it doubles to {size:,} characters"
        growth = max(took / before, SLACK) if before > TINY else 2 * GROWTH
        if size == largest or took * growth ** log2(largest / size) <= LIMIT:
            return None
        before = took if 2 * size <= largest else inf  # the last step is no doubling
        size = min(2 * size, largest)
    return None


def _largest(evaluator: Evaluator, trace: Trace) -> int:
    """Return the size of the largest trace of this shape within the budget and `LARGEST`; 0 if it lacks an input."""
    view = evaluator.project(trace)
    if isinstance(view, NotApplicable):
        return 0
    budget = evaluator.budget
    given = (
        (LARGEST, len(msgspec.json.encode(trace))),
        (budget.characters, sum(map(len, texts_of(view)))),
        (budget.items, sum(lengths_in(view))),
        (budget.regions, regions_in(view)),
    )
    return int(min(0.98 * FIRST * most / has for most, has in given if most is not None and has))


@lru_cache(maxsize=1)
def _unit_s() -> float:
    """Time a fixed piece of work like that of evaluators: words split, counted and joined."""
    return min(_work_s() for _ in range(6))


def _work_s() -> float:
    start = time.thread_time()
    counts: dict[str, int] = {}
    for word in " ".join(map(str, range(120_000))).split():
        counts[word[-4:]] = counts.get(word[-4:], 0) + len(word)
    return time.thread_time() - start
