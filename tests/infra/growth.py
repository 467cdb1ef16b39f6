"""Whether work takes time that grows as its input does."""

import gc
import time
from collections.abc import Callable
from math import inf

_TRIES = 12
_NOISE_S = 0.05  # below, a ratio tells of the machine
_SURE = 3  # tries after which work that takes far too long is not tried again
_FAR = 2.0  # times the limit


def processor_s(work: Callable[[], object]) -> float:
    """Seconds of the processor that it takes, without the garbage collector, which walks through the whole process."""
    gc.disable()
    try:
        start = time.process_time()
        work()
        return time.process_time() - start
    finally:
        gc.enable()


def growth_fault(
    small: Callable[[], object], large: Callable[[], object], ratio: float, *, most_s: float = inf
) -> str | None:
    """What is wrong where `large`, whose input is `ratio` times that of `small`, takes too long; None: nothing.

    The limit lies half-way between linear and quadratic time, on a scale of powers. The best of several tries counts:
    what else runs on the machine only ever adds. Far beyond the limit few tries are enough.
    """
    small_s = large_s = inf
    for number in range(1, _TRIES + 1):
        small_s, large_s = min(small_s, processor_s(small)), min(large_s, processor_s(large))
        limit_s = min(max(ratio**1.5 * small_s, _NOISE_S), most_s)
        if large_s <= limit_s:
            return None
        if number >= _SURE and large_s > _FAR * limit_s:
            break
    return f"{large_s:.3f} s, and {small_s:.3f} s for 1/{ratio:g} of it"
