"""Cohen's kappa against a published example, another implementation, and by simulation of its interval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from ragtide.drift.stats import Agreements, cohens_kappa


def test_the_grants_that_two_readers_accept_or_reject() -> None:
    """20 accepted by both, 5 and 10 by one, 15 by none: po = 0.7, pe = 0.5, kappa = 0.4."""
    found = cohens_kappa(Agreements(20, 5, 10, 15))
    assert found is not None
    assert found.value == pytest.approx(0.4)
    # By hand: same = 0.4 (1 - 1.1 * 0.6)^2 + 0.3 (1 - 0.9 * 0.6)^2; different = 0.6^2 (0.1 * 1.1^2 + 0.2 * 0.9^2)
    same, different = 0.4 * 0.34**2 + 0.3 * 0.46**2, 0.36 * (0.1 * 1.1**2 + 0.2 * 0.9**2)
    error = ((same + different - (0.4 - 0.5 * 0.6) ** 2) / (50 * 0.25)) ** 0.5
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.4 - 1.959964 * error, abs=1e-6)
    assert found.interval.high == pytest.approx(0.4 + 1.959964 * error, abs=1e-6)


@given(*[st.integers(0, 40)] * 4)
def test_it_agrees_with_scikit_learn(both: int, first: int, second: int, neither: int) -> None:
    one = [1] * (both + first) + [0] * (second + neither)
    other = [1] * both + [0] * first + [1] * second + [0] * neither
    found = cohens_kappa(Agreements(both, first, second, neither))
    if len({*one, *other}) < 2:
        assert found is None
    else:
        assert found is not None
        assert found.value == pytest.approx(cohen_kappa_score(one, other))
        assert found.interval is None or found.interval.low <= found.value <= found.interval.high


def test_intervals_hold_the_true_kappa() -> None:
    shares = np.array([0.3, 0.1, 0.15, 0.45])
    first, second = shares[0] + shares[1], shares[0] + shares[2]
    chance = first * second + (1 - first) * (1 - second)
    truth = (shares[0] + shares[3] - chance) / (1 - chance)
    held = 0
    for cases in np.random.default_rng(4).multinomial(200, shares, 2_000):
        found = cohens_kappa(Agreements(*map(int, cases)))
        assert found is not None
        assert found.interval is not None
        held += found.interval.low <= truth <= found.interval.high
    assert abs(held / 2_000 - 0.95) <= 0.015


def test_where_all_agree_there_is_no_interval() -> None:
    found = cohens_kappa(Agreements(5, 0, 0, 7))
    assert found is not None
    assert (found.value, found.interval) == (1.0, None)
