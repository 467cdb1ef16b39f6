"""Mix and rate effects by hand, and that they are the whole move whatever the groups do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.drift.rootcause.attribution import contributions, effects, shift_of
from ragtide.drift.rootcause.slices import Split, Sums, split_of

AFTER = np.array([False, True])
counts = st.integers(0, 10**6)
groups = st.lists(st.tuples(counts, st.floats(-1e3, 1e3), counts, st.floats(-1e3, 1e3)), min_size=1, max_size=30)


def split(**held: tuple[float, float, float, float]) -> Split:
    """Of each group count and mean before, count and mean after."""
    pairs = {
        name: Sums(np.array([n, m], dtype=float), np.array([n * mean, m * after]), np.zeros(2))
        for name, (n, mean, m, after) in held.items()
    }
    whole = Sums(*(np.sum([one[i] for one in pairs.values()], axis=0) for i in range(3)))
    return split_of("tenant", pairs, whole, AFTER)


@given(groups)
def test_the_effects_add_up_to_the_move(held: list[tuple[int, float, int, float]]) -> None:
    n, mean, m, after = (np.array(column, dtype=float) for column in zip(*held, strict=True))
    if n.sum() and m.sum():
        found = effects(n, n * mean, m, m * after)
        move = (m * after).sum() / m.sum() - (n * mean).sum() / n.sum()
        assert found.mix.sum() + found.rate.sum() == pytest.approx(move, rel=1e-9, abs=1e-9)


def test_by_hand() -> None:
    """0.7 · 0.9 + 0.3 · 0.8 = 0.87 before, 0.6 · 0.9 + 0.4 · 0.4 = 0.70 after, 0.785 between them.

    b: mix 0.1 (0.6 - 0.785) = -0.0185, rate 0.35 (0.4 - 0.8) = -0.14; a: mix -0.1 (0.9 - 0.785) = -0.0115.
    """
    parted = split(a=(70, 0.9, 60, 0.9), b=(30, 0.8, 40, 0.4))
    move = shift_of(parted)
    assert move is not None
    assert (move.before, move.after, move.n_before, move.n_after) == pytest.approx((0.87, 0.70, 100, 100))
    a, b = contributions(parted, move)
    assert (a.mix, a.rate, b.mix, b.rate) == pytest.approx((-0.0115, 0, -0.0185, -0.14), abs=1e-12)
    assert (a.share, b.share) == pytest.approx((0.0115 / 0.17, 0.1585 / 0.17))
    assert (b.traffic, b.mean_before, b.mean_after) == pytest.approx((0.35, 0.8, 0.4))
    assert b.is_rate_effect


def test_simpsons_paradox_is_all_mix() -> None:
    """Both groups rise by 0.02, their mix alone takes 0.6 · 0.5 = 0.3 away."""
    parted = split(easy=(900, 0.9, 300, 0.92), hard=(100, 0.4, 700, 0.42))
    move = shift_of(parted)
    assert move is not None
    found = contributions(parted, move)
    assert move.size == pytest.approx(-0.28)
    assert sum(one.rate for one in found) == pytest.approx(0.02)
    assert sum(one.mix for one in found) == pytest.approx(-0.3)
    assert not any(one.is_rate_effect for one in found)


def test_a_group_that_appears_or_vanishes_is_all_mix() -> None:
    """Half of the traffic goes from 0.9 to a new group of 0.3; by the middle 0.75 they take 0.075 and 0.225."""
    parted = split(stays=(50, 0.9, 50, 0.9), gone=(50, 0.9, 0, 0.0), new=(0, 0.0, 50, 0.3))
    move = shift_of(parted)
    assert move is not None
    stays, gone, new = contributions(parted, move)
    assert (stays.mix, gone.mix, new.mix) == pytest.approx((0, -0.5 * 0.15, -0.5 * 0.45))
    assert (stays.rate, gone.rate, new.rate) == pytest.approx((0, 0, 0))
    assert (gone.mean_after, new.mean_before) == (None, None)


def test_nothing_before_or_after_is_no_move() -> None:
    assert shift_of(split(a=(0, 0.0, 9, 0.5))) is None
    assert shift_of(split(a=(9, 0.5, 0, 0.0))) is None


def test_what_no_group_has_is_told_with_none() -> None:
    whole = Sums(np.array([10.0, 10.0]), np.array([8.0, 2.0]), np.array([7.0, 2.0]))
    a = Sums(np.array([4.0, 10.0]), np.array([3.0, 2.0]), np.array([3.0, 1.0]))
    parted = split_of("tenant", {"a": a}, whole, AFTER)
    assert parted.n.tolist() == [[4, 6], [10, 0]]
    assert parted.total.tolist() == [[3, 5], [2, 0]]
    assert parted.squares.tolist() == [[3, 4], [1, 0]]
