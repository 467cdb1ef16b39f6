"""Delays between retries: exponential with jitter, up to a cap."""

import random
from collections.abc import Iterator


def delays(rng: random.Random, *, first_s: float = 0.1, cap_s: float = 10.0) -> Iterator[float]:
    """Yield endless delays, each between half and the whole of a bound that doubles up to `cap_s`."""
    bound = first_s
    while True:
        yield bound * rng.uniform(0.5, 1.0)
        bound = min(bound * 2, cap_s)
