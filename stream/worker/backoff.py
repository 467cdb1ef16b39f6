"""How long to wait before trying again: longer each time, up to a cap, never in step with the others."""

import random
from collections.abc import Iterator


def delays(rng: random.Random, *, first_s: float = 0.1, cap_s: float = 10.0) -> Iterator[float]:
    """Endless; each between half and the whole of a bound that doubles up to `cap_s`."""
    bound = first_s
    while True:
        yield bound * rng.uniform(0.5, 1.0)
        bound = min(bound * 2, cap_s)
