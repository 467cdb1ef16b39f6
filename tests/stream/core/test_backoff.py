"""Waits grow to their cap, are spread below it, and never run out."""

import random
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from ragtide.stream.worker.backoff import delays

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


@given(st.integers(), st.floats(1e-3, 10), st.floats(1, 1000))
def test_whatever_the_seed_the_cap_holds_and_the_waits_never_end(seed: int, first_s: float, times: float) -> None:
    cap_s = first_s * times
    waits = list(islice(delays(random.Random(seed), first_s=first_s, cap_s=cap_s), 3000))
    assert len(waits) == 3000  # doubled without a cap, the bound would be infinite by now
    bounds = [min(first_s * 2**number, cap_s) for number in range(20)]
    assert all(0.5 * bound <= wait <= bound for wait, bound in zip(waits, bounds, strict=False))
    assert all(0.5 * cap_s <= wait <= cap_s for wait in waits[20:])
