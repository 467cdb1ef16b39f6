"""Waits grow to their cap, are spread below it, and never run out."""

import random
from itertools import islice

from stream.lanes.backoff import delays

BOUNDS_S = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4] + [10.0] * 13


def test_each_wait_is_between_half_and_the_whole_of_a_bound_that_doubles_to_its_cap() -> None:
    waits = list(islice(delays(random.Random(1)), len(BOUNDS_S)))
    shares = [wait / bound for wait, bound in zip(waits, BOUNDS_S, strict=True)]
    assert all(0.5 <= share <= 1.0 for share in shares)
    assert min(shares) < 0.6  # spread over all of it: two workers that fail together come back apart
    assert max(shares) > 0.9
    assert len(set(shares)) == len(shares)


def test_the_first_wait_and_the_cap_are_the_callers() -> None:
    waits = list(islice(delays(random.Random(2), first_s=1.0, cap_s=3.0), 1000))
    assert 0.5 <= waits[0] <= 1.0 <= waits[1] <= 2.0
    assert all(1.5 <= wait <= 3.0 for wait in waits[2:])
