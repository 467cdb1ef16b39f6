"""Random samples: of traces by their ids, the same in every table, or of whole minutes, to read no others."""

import random
from collections.abc import Mapping

_HASH_BUCKETS = 1 << 20
_OVERSAMPLING = 5  # times the wanted records lie in the minutes, so that a sample does not come from a few minutes


def in_sample(share: float) -> str:
    """Return the SQL condition that keeps this share of traces, the same ones in every table."""
    return "1" if share >= 1 else f"cityHash64(trace_id) % {_HASH_BUCKETS} < {int(share * _HASH_BUCKETS)}"


def sample_minutes(counts: Mapping[int, int], most: int, seed: int | str) -> list[int]:
    """Draw minutes until they hold enough records to sample `most` from; ascending.

    The same for the same `counts`, which are by minute and in its order, and seed.
    """
    minutes = list(counts)
    random.Random(seed).shuffle(minutes)
    found, total = [], 0
    for minute in minutes:
        if total >= most * _OVERSAMPLING:
            break
        found.append(minute)
        total += counts[minute]
    return sorted(found)
