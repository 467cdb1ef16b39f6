"""Measures at startup which runtime of a model is the fastest on this machine."""

import logging
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from ragtide.evaluators.runtime.batches import BatchRunner, Window, pad_windows

_log = logging.getLogger(__name__)

LENGTHS = (32, 128)  # of the windows that are measured: a sentence, a chunk
TOKENS = 128  # of a pass
ROUNDS = 3  # of which the best counts
BUDGET_S = 1.5  # no further length or round after that

Runtime = TypeVar("Runtime", bound=BatchRunner)

_measured: dict[tuple[str, Hashable], str] = {}


def fastest(
    model: str,
    settings: Hashable,
    makers: Mapping[str, Callable[[], Runtime]],
    longest: Callable[[Runtime], int],
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[str, Runtime]:
    """Return the fastest runtime with its name, and drop the others. `longest` returns the token limit of a runtime.

    Results are cached per model and settings for the life of the process.
    """
    known = _measured.get((model, settings))
    runtimes = {name: make() for name, make in makers.items() if known not in makers or name == known}
    if len(runtimes) > 1:
        seconds = _seconds(runtimes, min(map(longest, runtimes.values())), clock)
        known = _measured[model, settings] = min(seconds, key=seconds.__getitem__)
        times = ", ".join(f"{name} {spent * 1_000:.0f} ms" for name, spent in seconds.items())
        _log.info("model %s runs on %s: %s", model, known, times)
    name = known if known in runtimes else next(iter(runtimes))
    return name, runtimes[name]


def _seconds(runtimes: Mapping[str, Runtime], most: int, clock: Callable[[], float]) -> dict[str, float]:
    """Return the sum of the best times over all lengths. All runtimes run the same passes."""
    began = clock()
    best: dict[tuple[str, int], float] = {}
    for length in LENGTHS * ROUNDS:
        if best and clock() - began > BUDGET_S:
            break
        batch = pad_windows([Window([1] * min(length, most))] * max(1, TOKENS // length))
        for name, runtime in runtimes.items():
            started = clock()
            runtime.run(iter([batch]))
            best[name, length] = min(best.get((name, length), float("inf")), clock() - started)
    return {name: sum(spent for (whose, _), spent in best.items() if whose == name) for name in runtimes}
