"""The simulated series have the moments that their description gives them, and are the same every time."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.drift import plans
from benchmarks.drift.backdrop import DENSE, SPARSE, Backdrop, backdrop, wander
from benchmarks.drift.changes import CHANGES, SPIKE, step
from benchmarks.drift.clock import HISTORY, START, WEEKEND, WINDOWS
from benchmarks.drift.plans import CategoryPlan, LatencyPlan, RatePlan, ScorePlan
from benchmarks.drift.series import Aggregates, Label, Series, sampled
from benchmarks.drift.shapes import SCORES, Own
from benchmarks.drift.unseen import ALL_CHANGES, SHAPES
from ragtide.drift.windows.histogram import LOG_ORIGIN, Scale

AT = HISTORY + 500
FLAT = Backdrop(np.full(WINDOWS, 100), np.zeros(WINDOWS))
LABEL = Label(0, "score", "smooth", "clean", "-0.10", AT, WINDOWS)
LATENCY = replace(LABEL, kind="latency")


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def drawn(plan: plans.Plan, label: Label = LABEL) -> Series:
    return sampled(label, plan, rng(2))


def test_known_good_days_are_two_weeks_from_a_monday() -> None:
    assert START[HISTORY] - START[0] == 14 * 86_400
    assert WEEKEND[HISTORY - 1] == 1  # the last of them is a Sunday
    assert np.flatnonzero(WEEKEND.reshape(21, 288).min(axis=1)).tolist() == [5, 6, 12, 13, 19, 20]


def test_beta_quantiles_have_the_moments_of_the_beta_distribution() -> None:
    quantiles = plans.beta(0.8, 9)
    assert quantiles.mean() == pytest.approx(0.8, abs=1e-5)
    assert quantiles.var() == pytest.approx(0.8 * 0.2 / 10, rel=1e-3)


@pytest.mark.parametrize("shape", SCORES)
def test_scores_have_the_mean_planned_and_lie_in_their_range(shape: str) -> None:
    plan = SCORES[shape](FLAT, rng())
    assert isinstance(plan, ScorePlan)
    wave = replace(plan, mean=plan.mean + 0.05 * np.sin(np.arange(WINDOWS)))
    series = drawn(wave)
    errors = series.means - wave.mean
    assert np.abs(errors.mean()) < 5 * errors.std() / np.sqrt(WINDOWS) + 1e-3
    assert np.corrcoef(series.means, wave.mean)[0, 1] > 0.8
    assert 0 <= series.values.min() < series.values.max() <= 1
    assert (series.values == 1).mean() > 0.2 or shape != "atom"
    assert shape != "levels" or set(np.unique(series.values)) == {0, 0.25, 0.5, 0.75, 1}


@pytest.mark.parametrize("seed", [1, 2])  # one of them moves all answers, the other spoils some
@pytest.mark.parametrize("shape", SCORES)
def test_a_step_lowers_the_mean_by_as_much_as_it_says(shape: str, seed: int) -> None:
    plan = step(0.1, SCORES[shape](FLAT, rng()), AT, rng(seed))
    assert isinstance(plan, ScorePlan)
    assert bool(plan.bad.any()) == (seed == 1)
    series = drawn(plan)
    assert series.means[:AT].mean() - series.means[AT:].mean() == pytest.approx(0.1, abs=0.004)


@pytest.mark.parametrize("shape", SCORES)
def test_a_wider_spread_is_half_as_wide_again_around_the_same_mean(shape: str) -> None:
    series = drawn(CHANGES["sd x 1.5"].apply(SCORES[shape](FLAT, rng()), AT, rng()))
    before, after = series.values[: series.ends[AT]], series.values[series.ends[AT] :]
    assert after.std(dtype=np.float64) / before.std(dtype=np.float64) == pytest.approx(1.5, abs=0.02)
    assert after.mean(dtype=np.float64) == pytest.approx(before.mean(dtype=np.float64), abs=0.004)


def test_a_ramp_takes_48_hours_and_a_spike_half_an_hour() -> None:
    plan = plans.smooth(FLAT, rng())
    ramp, spike = (CHANGES[name].apply(plan, AT, rng()) for name in ("ramp -0.10", "spike -0.20"))
    assert isinstance(ramp, ScorePlan)
    assert isinstance(spike, ScorePlan)
    fallen = plan.mean - ramp.mean
    assert fallen[[AT - 1, AT + 287, AT + 575, WINDOWS - 1]].tolist() == pytest.approx([0, 0.05, 0.1, 0.1])
    assert np.flatnonzero(plan.mean != spike.mean).tolist() == list(range(AT, AT + SPIKE))


def test_failures_come_as_often_as_planned() -> None:
    plan = CHANGES["1 to 3 %"].apply(plans.rate(0.01, FLAT), AT, rng())
    assert isinstance(plan, RatePlan)
    assert plan.probability[[0, AT]].tolist() == pytest.approx([0.01, 0.03])
    before, after = np.split(drawn(plan).total, [AT])
    assert abs(before.sum() - 100 * AT * 0.01) < 5 * np.sqrt(100 * AT * 0.01)
    assert abs(after.sum() - 100 * (WINDOWS - AT) * 0.03) < 5 * np.sqrt(100 * (WINDOWS - AT) * 0.03)


def test_latency_has_a_pareto_tail_and_changes_as_it_says() -> None:
    plan = plans.latency(FLAT, rng())
    survival = 1 - plans.MIDDLES[-1000:]
    slopes = np.diff(plan.base[-1000:]) / -np.diff(np.log(survival))
    assert slopes.min() == pytest.approx(slopes.max(), rel=1e-6)
    assert 1 / 2.5 <= slopes[0] <= 1 / 1.5
    slower, some = (CHANGES[name].apply(plan, AT, rng()) for name in ("latency x 1.3", "5 % x 5"))
    usual, all_slower, some_slower = (drawn(one, LATENCY).measured for one in (plan, slower, some))
    first = AT * 100
    assert (all_slower / usual)[[0, first - 1, first, -1]].tolist() == pytest.approx([1, 1, 1.3, 1.3])
    assert ((some_slower / usual)[first:] > 4.9).mean() == pytest.approx(0.05, abs=0.003)
    assert (some_slower / usual)[:first].max() == pytest.approx(1)


def test_eight_percent_of_the_mix_move() -> None:
    plan = plans.languages(FLAT, rng())
    moved = CHANGES["8 % of mix"].apply(plan, AT, rng())
    assert isinstance(moved, CategoryPlan)
    distance = np.abs(moved.shares - plan.shares).sum(axis=1) / 2
    assert distance[[0, AT - 1, AT, WINDOWS - 1]].tolist() == pytest.approx([0, 0, 0.08, 0.08])
    counts = drawn(moved).counts
    assert (counts.sum(axis=1) == 100).all()
    assert counts[AT:].sum(axis=0) / counts[AT:].sum() == pytest.approx(moved.shares[-1], abs=0.005)


def test_a_wandering_level_has_variance_1_and_the_correlation_asked_for() -> None:
    paths = np.stack([wander(0.9, rng(seed)) for seed in range(40)])
    assert paths.var() == pytest.approx(1, abs=0.05)
    assert (paths[:, 1:] * paths[:, :-1]).mean() == pytest.approx(0.9, abs=0.05)
    assert paths[:, 0].var() == pytest.approx(1, abs=0.7)  # stationary from the first window on


@pytest.mark.parametrize(("regime", "limits"), [("clean", DENSE), ("messy", DENSE), ("sparse", SPARSE)])
def test_windows_hold_as_many_records_as_their_regime_says(regime: str, limits: tuple[int, int]) -> None:
    n = np.stack([backdrop(regime, rng(seed)).n for seed in range(20)])
    assert limits[0] <= n.min() < n.max() <= limits[1]


def test_half_of_the_series_change_and_kinds_and_regimes_come_as_described() -> None:
    labels = [Own().label(3, index) for index in range(400)]
    assert sum(one.change is None for one in labels) == 200
    assert {one.change for one in labels} == {None, *CHANGES}
    assert all(HISTORY + 288 <= one.at < HISTORY + 4 * 288 for one in labels if one.change)
    shares = [sum(one.regime == regime for one in labels) / 400 for regime in ("clean", "messy", "sparse")]
    assert shares == pytest.approx([0.4, 0.4, 0.2], abs=0.08)
    assert all(ALL_CHANGES[one.change].kind == one.kind for one in labels if one.change)


def test_a_series_is_made_of_its_seed_and_number_alone() -> None:
    population = Own()
    alone = population.series(5, population.label(5, 14))
    population.series(5, population.label(5, 3))
    again = population.series(5, population.label(5, 14))
    other = population.series(6, population.label(5, 14))
    assert len(alone.values) > 0
    assert again.values.tobytes() == alone.values.tobytes()
    assert again.n.tolist() == alone.n.tolist()
    assert other.values.tobytes() != alone.values.tobytes()


def test_aggregates_are_sums_over_the_records_of_each_window() -> None:
    n = np.arange(WINDOWS) % 4  # some windows have no records
    series = drawn(plans.latency(replace(FLAT, n=n), rng()), LATENCY)
    found = Aggregates.of(series)
    windows = np.split(series.measured.astype(np.float64), series.ends[1:-1])
    assert found.total == pytest.approx([window.sum() for window in windows], rel=1e-6)
    assert found.squares == pytest.approx([(window**2).sum() for window in windows], rel=1e-6)
    latencies = Scale(0, np.inf, "lower")
    bins = [[latencies.bin(float(seconds)) - LOG_ORIGIN for seconds in window] for window in windows[:300]]
    known = np.sort(np.concatenate(windows[:HISTORY]))
    levels = [latencies.bin(float(known[round(len(known) * share)])) - LOG_ORIGIN for share in (0.5, 0.95)]
    assert found.counts[:300].tolist() == [[sum(one > level for one in window) for level in levels] for window in bins]


@pytest.mark.parametrize("name", SHAPES)
def test_every_unseen_shape_is_well_formed_and_changes_when_it_says(name: str) -> None:
    shape = SHAPES[name]
    plan = shape.make(rng())
    assert (plan.n >= 0).all()
    assert len(plan.n) == WINDOWS
    moved = ALL_CHANGES[shape.changes[0]].apply(plan, AT, rng())
    by_window = [name for name in vars(plan) if np.shape(vars(plan)[name])[:1] == (WINDOWS,)]
    differences = [np.abs(vars(plan)[name] - vars(moved)[name]).reshape(WINDOWS, -1).max(axis=1) for name in by_window]
    assert np.max(differences, axis=0)[:AT].max() < 1e-12
    assert np.max(differences, axis=0)[AT:].min() > 1e-6
    assert valid(moved)


def valid(plan: plans.Plan) -> bool:
    if isinstance(plan, CategoryPlan):
        return bool((plan.shares >= 0).all() and np.allclose(plan.shares.sum(axis=1), 1))
    if isinstance(plan, RatePlan):
        return bool(((plan.probability >= 0) & (plan.probability <= 1)).all())
    if isinstance(plan, LatencyPlan):
        return bool(np.isfinite(plan.base).all() and np.isfinite(plan.shift).all())
    return bool(((plan.mean > 0) & (plan.mean <= 1.06)).all() and ((plan.bad >= 0) & (plan.bad <= 1)).all())
