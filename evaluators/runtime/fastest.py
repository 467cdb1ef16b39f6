"""Which of the runtimes of one model is the fastest on this machine: measured as a worker starts."""

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
    """The fastest runtime, with its name; the others are let go. `longest` tells how many tokens one reads at once.

    What was measured of a model under the same settings is remembered for as long as the process lives.
    """
    known = _measured.get((model, settings))
    made = {name: make() for name, make in makers.items() if known not in makers or name == known}
    if len(made) > 1:
        seconds = _seconds(made, min(map(longest, made.values())), clock)
        known = _measured[model, settings] = min(seconds, key=seconds.__getitem__)
        told = ", ".join(f"{name} {spent * 1_000:.0f} ms" for name, spent in seconds.items())
        _log.info("model %s runs on %s: %s", model, known, told)
    name = known if known in made else next(iter(made))
    return name, made[name]


def _seconds(made: Mapping[str, Runtime], most: int, clock: Callable[[], float]) -> dict[str, float]:
    """Of each, the best times of all lengths together; every one has had the same passes."""
    began = clock()
    best: dict[tuple[str, int], float] = {}
    for length in LENGTHS * ROUNDS:
        if best and clock() - began > BUDGET_S:
            break
        batch = pad_windows([Window([1] * min(length, most))] * max(1, TOKENS // length))
        for name, runtime in made.items():
            started = clock()
            runtime.run(iter([batch]))
            best[name, length] = min(best.get((name, length), float("inf")), clock() - started)
    return {name: sum(spent for (whose, _), spent in best.items() if whose == name) for name in made}
