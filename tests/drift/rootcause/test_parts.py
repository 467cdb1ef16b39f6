"""What versions, stages, strata and lines tell, by hand and against SciPy."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ragtide.drift.rootcause.attribution import shift_of
from ragtide.drift.rootcause.measure import MeasuredQuantity, bad_share, share_out_of_bounds, tail_share
from ragtide.drift.rootcause.query import RcaQuery, timeline
from ragtide.drift.rootcause.question_mix import assess_mix as traffic
from ragtide.drift.rootcause.retrieval_or_generation import stage_verdict as stage
from ragtide.drift.rootcause.slices import Split
from ragtide.drift.rootcause.versions import find_jump
from ragtide.drift.stats.proportions import Share
from ragtide.drift.windows.histogram import Scale
from ragtide.drift.windows.metrics import MetricRef
from ragtide.evaluators.builtin.groundedness import groundedness
from ragtide.evaluators.builtin.perplexity import perplexity

GROUNDED = MetricRef(groundedness, groundedness.metrics[0])
PERPLEXITY = MetricRef(perplexity, perplexity.metrics[0])
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("failing", "passing", "verdict"),
    [
        ((100, 90), (100, 10), "retrieval"),
        ((100, 10), (100, 10), "generation"),
        ((100, 90), (100, 85), "unclear"),  # contexts are as bad where answers are good
        ((100, 55), (100, 10), "unclear"),  # half of them
        ((19, 19), (100, 0), "unclear"),
        ((100, 100), (19, 0), "unclear"),
    ],
)
def test_stages(failing: tuple[int, int], passing: tuple[int, int], verdict: str) -> None:
    assert stage(Share(*failing[::-1]), Share(*passing[::-1])) == verdict


def test_the_version_that_took_over_near_the_onset_is_told_with_the_one_that_lost() -> None:
    counts = np.zeros((70, 3))
    counts[:, 0] = 5  # keeps its traffic
    counts[:37, 1] = 10
    counts[37:, 2] = 10
    found = find_jump(counts, 35)
    assert found is not None
    assert (found.step, found.from_, found.to) == (37, 1, 2)
    assert (found.share_before, found.share_after) == pytest.approx((0, 2 / 3))


@pytest.mark.parametrize(
    ("change", "per_step"), [(20, 10), (50, 10), (35, 0.1), (None, 10)], ids=["before", "later", "too few", "none"]
)
def test_no_version_is_blamed_that_came_at_another_time(change: int | None, per_step: float) -> None:
    counts = np.zeros((70, 2))
    counts[:, 0] = per_step
    if change is not None:
        counts[change:] = counts[change:, ::-1]
    assert find_jump(counts, 35) is None


def test_a_slow_rollout_is_no_jump() -> None:
    share = np.linspace(0.3, 0.5, 70)
    assert find_jump(np.column_stack([100 * (1 - share), 100 * share]), 35) is None


def strata(weights_after: tuple[float, float], means_after: tuple[float, float]) -> Split:
    """Half of each before, at 0.9 and 0.5, with a little noise."""
    random = np.random.default_rng(7)
    since = np.arange(125) >= 120
    n = np.where(since[:, None], np.array(weights_after), 0.5) * 100
    means = np.where(since[:, None], np.array(means_after), [0.9, 0.5]) + random.normal(0, 0.01, (125, 2))
    n = n + np.array([1, -1]) * random.integers(-3, 4, (125, 1))
    none = np.zeros((125, 1))
    total = np.hstack([n * means, none])
    return Split("strata", ("a", "b"), np.hstack([n, none]), total, total, since)


@pytest.mark.parametrize(
    ("weights", "means", "verdict", "mix"),
    [
        ((0.1, 0.9), (0.9, 0.5), "questions", 1.0),
        ((0.5, 0.5), (0.7, 0.3), "answers", 0.0),
        ((0.1, 0.9), (0.75, 0.35), "both", 0.16 / 0.31),  # -0.4 · 0.4 by mix and -0.15 by rate
    ],
)
def test_mix_and_answers_are_told_apart(
    weights: tuple[float, float], means: tuple[float, float], verdict: str, mix: float
) -> None:
    found = traffic(strata(weights, means), seed=1)
    assert found is not None
    assert (found.verdict, found.strata) == (verdict, 2)
    assert found.mix == pytest.approx(mix, abs=0.05)


def test_strata_are_not_told_of_what_did_not_move_or_of_few_times() -> None:
    parted = strata((0.1, 0.9), (0.9, 0.5))
    few = Split("strata", parted.values, parted.n[-12:], parted.total[-12:], parted.total[-12:], parted.after[-12:])
    found = traffic(few, 1)
    assert found is not None
    assert found.verdict == "unclear"
    still = Split("strata", ("a",), np.ones((125, 2)), np.ones((125, 2)), np.ones((125, 2)), parted.after)
    assert traffic(still, 1) is None
    assert shift_of(still) is not None


def test_a_tail_is_a_tenth_on_the_bad_side() -> None:
    scale = Scale.of(PERPLEXITY.metric)
    values = np.random.default_rng(1).lognormal(1, 0.5, 5000)
    bins: dict[int, int] = {}
    for value in values:
        bins[scale.bin(value)] = bins.get(scale.bin(value), 0) + 1
    measure = tail_share(PERPLEXITY, bins)
    assert measure is not None
    assert measure.min is None
    assert measure.max is not None
    assert (values > measure.max).mean() == pytest.approx(0.1, abs=0.01)
    assert tail_share(PERPLEXITY, {}) is None


@pytest.mark.parametrize("value", [0.0, 1e-300, 1.0, 1e308])
def test_a_line_stands_in_the_bin_that_it_is_of(value: float) -> None:
    scale = Scale.of(PERPLEXITY.metric)
    measure = tail_share(PERPLEXITY, {scale.bin(value): 1})
    assert measure is not None
    assert measure.max == pytest.approx(value, rel=0.01)


def test_lines_are_snapped_as_bins_are() -> None:
    assert share_out_of_bounds(GROUNDED, 0.7549, None).min == pytest.approx(0.75)
    assert bad_share(MeasuredQuantity("mean", GROUNDED)) is None
    assert bad_share(MeasuredQuantity("mean", GROUNDED, 0.75)) == MeasuredQuantity("share", GROUNDED, 0.75)


@pytest.mark.parametrize(
    ("lasted_s", "step_s", "before", "after"),
    [(0, 60, 240, 1), (300, 60, 240, 5), (7200, 180, 320, 40), (864_000, 360, 240, 240)],
)
def test_what_it_is_compared_with(lasted_s: int, step_s: int, before: int, after: int) -> None:
    question = RcaQuery("prod", GROUNDED, NOON, NOON + timedelta(seconds=lasted_s))
    found = timeline(question, 60)
    assert (found.step_s, found.before, found.after) == (step_s, before, after)
    assert found.since == NOON.timestamp()
    assert found.end == NOON.timestamp() + max(60, min(lasted_s, 86_400))


def test_bad_stretches_before_the_onset_are_left_out() -> None:
    found = timeline(RcaQuery("prod", GROUNDED, NOON, NOON + timedelta(minutes=5)), 60)
    since = found.since
    kept = found.step_mask([(since - 600, since - 480), (since, since + 60)])
    assert (~kept).nonzero()[0].tolist() == [230, 231]
