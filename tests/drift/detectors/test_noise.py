"""Variance, skewness and inflation of updates: against least squares of SciPy, closed forms and pooling by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, signal

from ragtide.drift.array_types import Floats
from ragtide.drift.detectors import noise
from ragtide.drift.detectors.noise import pool_windows


def rows(*values: object) -> Floats:
    return np.array(values, dtype=np.float64)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 80))
def test_windows_are_joined_one_after_the_other(counts: list[int], least: int) -> None:
    sums = [3 * count + 1 if count else 0 for count in counts]
    joined: list[tuple[float, float, float]] = []
    n = total = squares = 0
    for count, value in zip(counts, sums, strict=True):
        n, total, squares = n + count, total + value, squares + count**2
        if n >= least:
            joined.append((n, total, squares / n**2))
            n = total = squares = 0
    found = pool_windows(rows(counts), rows(sums), np.array([float(least)]))
    assert found.count[0] == len(joined)
    at = found.present[0]
    columns = (found.records[0, at], found.total[0, at], found.repeat_share[0, at])
    assert np.stack(columns, axis=1).ravel() == pytest.approx(np.array(joined).ravel())


def test_a_and_b_are_found() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(30, 500, (20, 4000)).astype(np.float64)
    residual = rng.normal(0, np.sqrt(0.04 / n + 0.0001))
    updates = pool_windows(n, n * residual, np.full(20, 30.0))
    found = noise.fit(updates, updates.total * updates.share, np.full(20, 1e-6))
    assert found.noise_per_record.mean() == pytest.approx(0.04, rel=0.03)
    assert found.noise_floor.mean() == pytest.approx(0.0001, rel=0.05)
    assert found.third_moment == pytest.approx(np.zeros(20), abs=0.1 * 0.2**3 * 30)
    assert found.inflation[:, :4] == pytest.approx(np.ones((20, 4)), abs=0.2)


def test_least_squares_are_non_negative_ones() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        x, q, weight = rng.random((3, 40)) + 0.01
        y = rng.normal(0, 1, 40) + rng.normal() * x
        root = np.sqrt(weight)
        known, _ = optimize.nnls(np.stack([x, q], axis=1) * root[:, None], y * root)
        a, b = noise._non_negative(weight[None], x[None], q[None], y[None])
        assert (float(a[0]), float(b[0])) == pytest.approx(known, abs=1e-9)


def test_where_all_have_as_many_records_all_beyond_the_floor_is_b() -> None:
    rng = np.random.default_rng(3)
    n = np.full((1, 3000), 100.0)
    updates = pool_windows(n, n * rng.normal(0, 0.03, n.shape), np.full(1, 30.0))
    found = noise.fit(updates, updates.total * updates.share, np.full(1, 0.04))
    assert found.noise_per_record[0] == pytest.approx(0.04)
    assert found.noise_floor[0] == pytest.approx(0.03**2 - 0.04 / 100, rel=0.1)


def test_old_incidents_do_not_make_the_noise() -> None:
    """1 % of the windows 30 deviations off: b, of winsorised residuals, would be 9 times the variance with them."""
    rng = np.random.default_rng(4)
    n = rng.integers(30, 500, (1, 4000)).astype(np.float64)
    residual = rng.normal(0, np.sqrt(0.04 / n + 0.0004)) + 0.6 * (rng.random(n.shape) < 0.01)
    updates = pool_windows(n, n * residual, np.full(1, 30.0))
    found = noise.fit(updates, updates.total * updates.share, np.full(1, 1e-6))
    assert found.noise_floor[0] < 3 * 0.0004


def test_skewed_records_are_known_by_the_skewness_of_their_means() -> None:
    """One in a hundred is 1, else 0: the third central moment is p (1 - p) (1 - 2 p)."""
    rng = np.random.default_rng(5)
    n = np.full((10, 8000), 40.0)
    updates = pool_windows(n, (rng.binomial(40, 0.01, n.shape) - 0.4).astype(np.float64), np.full(10, 30.0))
    found = noise.fit(updates, updates.total * updates.share, np.full(10, 0.0099))
    assert found.third_moment.mean() == pytest.approx(0.01 * 0.99 * 0.98, rel=0.1)


def test_inflation_of_a_wander_is_its_closed_form() -> None:
    """AR(1): Var(sum of L)/L = (1 + r - 2 r (1 - r^L) / (L (1 - r))) / (1 - r); that it never falls adds a little."""
    r = 0.8
    rng = np.random.default_rng(6)
    steps = rng.normal(0, np.sqrt(1 - r**2), (200, 4000))
    z = signal.lfilter([1], [1, -r], steps, axis=1)[:, 100:]
    found = noise.inflation(z, np.full(200, z.shape[1])).mean(axis=0)
    lengths = noise.HORIZONS
    known = (1 + r - 2 * r * (1 - r**lengths) / (lengths * (1 - r))) / (1 - r)
    assert found[:6] == pytest.approx(known[:6], rel=0.05)
    assert found[6:] == pytest.approx(known[6:], rel=0.1)


def test_a_horizon_that_history_hardly_has_takes_the_one_before() -> None:
    z = np.random.default_rng(7).normal(0, 2, (1, 40))
    found = noise.inflation(z, np.array([40]))[0]
    assert found[2] > 1  # 6 updates, of which there are more than four times as many
    assert found[4:].tolist() == [found[3]] * 4  # 12 and more: not


def test_between_horizons_inflation_is_linear_in_the_log() -> None:
    inflation = np.array([[1.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 5.0]])
    found = noise.at_horizon(inflation, np.array([[1.0, np.sqrt(3), 50.0, 288.0, np.sqrt(144 * 288)]]))
    assert found[0] == pytest.approx([1.0, 2.0, 3.0, 5.0, 4.0])
