"""Intervals in SQL against scipy's."""

import numpy as np
import pytest
from scipy import stats

from ragtide.dashboards.interval_sql import mean_interval, share_interval
from ragtide.sinks.clickhouse.database import Database

pytestmark = pytest.mark.clickhouse


def ends(database: Database, low: str, high: str, **columns: float) -> tuple[float | None, float | None]:
    given = ", ".join(f"toFloat64({value!r}) AS {name}" for name, value in columns.items())
    (row,) = database.rows(f"SELECT {low} AS low, {high} AS high FROM (SELECT {given})")
    return row["low"], row["high"]


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (3, 10), (50, 50), (1, 1000)])
def test_shares_have_wilsons(database: Database, hits: int, n: int) -> None:
    wanted = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    found = ends(database, *share_interval("rate", "n"), rate=hits / n, n=n)
    assert found == pytest.approx((wanted.low, wanted.high), abs=1e-9)


@pytest.mark.parametrize(("n", "tolerance"), [(5, 0.02), (8, 0.005), (30, 1e-4), (10_000, 1e-6)])
def test_means_have_students(database: Database, n: int, tolerance: float) -> None:
    """Half the width is within `tolerance` of the exact one: Student's quantile is expanded."""
    values = np.random.default_rng(n).normal(5, 2, n)
    wanted = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    low_sql, high_sql = mean_interval("mean", "n", "squares")
    mean, squares = float(values.mean()), float((values**2).sum())
    low, high = ends(database, low_sql, high_sql, mean=mean, n=float(n), squares=squares)
    assert low is not None
    assert high is not None
    assert (low + high) / 2 == pytest.approx(values.mean())
    assert high - low == pytest.approx(wanted[1] - wanted[0], rel=tolerance)


def test_records_of_0_and_1_have_wilsons_and_few_others_none(database: Database) -> None:
    wanted = stats.binomtest(3, 3).proportion_ci(0.95, method="wilson")
    mean = mean_interval("mean", "n", "squares")
    assert ends(database, *mean, mean=1.0, n=3.0, squares=3.0) == pytest.approx((wanted.low, wanted.high), abs=1e-9)
    assert ends(database, *mean, mean=0.5, n=4.0, squares=1.1) == (None, None)  # two equal values would be certain
