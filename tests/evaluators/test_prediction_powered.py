"""Prediction-powered estimates: against another implementation, by simulated worlds, and merged from parts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.prediction_powered import Estimate, add_sums, estimate, parts_of, row_sums, sums_of

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
WORLDS = 2_000


@dataclass(frozen=True)
class Traffic:
    """Traces of some worlds, one world a row: companion, score, and whether the evaluator applies."""

    cheap: Numbers
    score: Numbers
    applies: Flags
    truth: float  # of the mean score where it applies


def normal(rng: np.random.Generator, shape: tuple[int, int], rho: float = 0.7) -> Traffic:
    """A score and a companion on another scale, with correlation `rho`."""
    shared, own = rng.normal(size=shape), rng.normal(size=shape)
    score = 0.6 + 0.15 * (rho * shared + (1 - rho**2) ** 0.5 * own)
    return Traffic(0.3 + 0.2 * shared, score, np.ones(shape, bool), 0.6)


def verdicts(rng: np.random.Generator, shape: tuple[int, int]) -> Traffic:
    """Yes (80 %) or no, and a companion from 0 to 1 that leans the same way."""
    score = (rng.random(shape) < 0.8).astype(float)
    return Traffic(np.clip(0.3 + 0.3 * score + rng.normal(0, 0.2, shape), 0, 1), score, np.ones(shape, bool), 0.8)


def not_always_applicable(rng: np.random.Generator, shape: tuple[int, int]) -> Traffic:
    """The evaluator applies to fewer traces where the companion is high: their mean is not that of all traces."""
    made = normal(rng, shape)
    return Traffic(made.cheap, made.score, rng.random(shape) < np.where(made.cheap > 0.3, 0.5, 0.9), np.nan)


def equal(traffic: Traffic) -> Numbers:
    return np.full(traffic.cheap.shape, 0.02)


def active(traffic: Traffic) -> Numbers:
    """More where the companion is low, as with a rule for low cheap scores; 0.02 elsewhere."""
    return np.where(traffic.cheap < 0.25, 0.1, 0.02)


def everyone(rng: np.random.Generator, traffic: Traffic) -> Flags:
    return np.ones(traffic.cheap.shape, bool)


def at_random(rng: np.random.Generator, traffic: Traffic) -> Flags:
    return rng.random(traffic.cheap.shape) < 0.7


def fewer_where_low(rng: np.random.Generator, traffic: Traffic) -> Flags:
    return rng.random(traffic.cheap.shape) < np.where(traffic.cheap < 0.3, 0.6, 0.9)


def none_in_the_evening(rng: np.random.Generator, traffic: Traffic) -> Flags:
    """The budget is spent after two thirds of the day."""
    return np.broadcast_to(np.arange(traffic.cheap.shape[1]) < traffic.cheap.shape[1] * 2 // 3, traffic.cheap.shape)


def estimates(traffic: Traffic, probability: Numbers, responds: Flags, rng: np.random.Generator) -> Iterator[Estimate]:
    """The estimate of each world."""
    judged = (rng.random(probability.shape) < probability) & responds
    world, _ = judged.nonzero()
    scored = traffic.applies[judged]
    score = np.where(scored, traffic.score[judged], 0.0)
    terms = row_sums(traffic.cheap[judged], 1 / probability[judged], np.ones(len(world)), score, scored * 1.0)
    sums = {name: np.bincount(world, weights=term, minlength=len(judged)) for name, term in terms.items()}
    of_all = {"n": np.full(len(judged), float(judged.shape[1])), "f": traffic.cheap.sum(axis=1)}
    sums |= {**of_all, "ff": (traffic.cheap**2).sum(axis=1)}
    for at in range(len(judged)):
        made = estimate({name: float(of[at]) for name, of in sums.items()})
        assert made is not None
        yield made


def worlds(
    make: Callable[[np.random.Generator, tuple[int, int]], Traffic],
    probability_of: Callable[[Traffic], Numbers],
    responds_of: Callable[[np.random.Generator, Traffic], Flags],
    number: int = WORLDS,
    traces: int = 10_000,
    seed: int = 5,
) -> list[Estimate]:
    rng = np.random.default_rng(seed)
    found: list[Estimate] = []
    for _ in range(number // 100):
        traffic = make(rng, (100, traces))
        found += estimates(traffic, probability_of(traffic), responds_of(rng, traffic), rng)
    assert len(found) == number
    return found


def coverage(found: Sequence[Estimate], truth: float, of: str = "mean") -> float:
    means = [getattr(one, of) for one in found]
    held: int = sum(one.low <= truth <= one.high for one in means)
    return held / len(means)


def width(found: Sequence[Estimate], of: str = "mean") -> float:
    means = [getattr(one, of) for one in found]
    mean: float = np.mean([one.high - one.low for one in means])
    return mean


@pytest.mark.parametrize(
    ("make", "truth", "probability", "responds"),
    [
        (normal, 0.6, equal, everyone),
        (normal, 0.6, equal, none_in_the_evening),
        (normal, 0.6, active, at_random),
        (verdicts, 0.8, equal, at_random),
        (verdicts, 0.8, active, everyone),
        (verdicts, 0.8, active, none_in_the_evening),
    ],
)
def test_95_percent_of_the_intervals_hold_the_truth(
    make: Any, truth: float, probability: Callable[[Traffic], Numbers], responds: Any
) -> None:
    found = worlds(make, probability, responds)
    assert abs(coverage(found, truth) - 0.95) <= 0.01
    assert abs(coverage(found, truth, "plain") - 0.95) <= 0.02
    assert width(found) < 0.95 * width(found, "plain")


def test_an_answer_that_is_missing_more_often_where_the_companion_is_low_biases_the_weighted_mean_only() -> None:
    found = worlds(normal, equal, fewer_where_low)
    assert abs(coverage(found, 0.6) - 0.95) <= 0.01
    assert coverage(found, 0.6, "plain") < 0.9


def test_a_companion_of_traces_to_which_the_evaluator_does_not_apply_biases_nothing() -> None:
    traffic = not_always_applicable(np.random.default_rng(1), (100, 20_000))
    truth = float(traffic.score[traffic.applies].mean())
    assert abs(truth - 0.6) > 0.01, "the traces are others"
    found = worlds(not_always_applicable, equal, everyone)
    assert abs(coverage(found, truth) - 0.95) <= 0.015
    assert abs(np.mean([one.mean.value for one in found]) - truth) < 0.001


def test_at_a_correlation_of_0_7_half_of_the_calls_give_the_width_of_all() -> None:
    """1 - 0.7^2 = 0.51 of the variance is left, so half of the calls are 1 % short in width."""

    def halved(traffic: Traffic) -> Numbers:
        return equal(traffic) / 2

    half, everything = worlds(normal, halved, everyone, 400), worlds(normal, equal, everyone, 400)
    assert width(half) <= 1.03 * width(everything, "plain")
    assert width(half) < 0.75 * width(half, "plain")
    calls, saved = (np.mean([getattr(one, name) for one in everything]) for name in ("judged", "saved"))
    assert saved / calls == pytest.approx(1 / 0.51 - 1, abs=0.1)


def test_a_companion_that_tells_nothing_does_no_harm() -> None:
    def unrelated(rng: np.random.Generator, shape: tuple[int, int]) -> Traffic:
        return normal(rng, shape, rho=0.0)

    found = worlds(unrelated, equal, everyone, 400)
    assert width(found) == pytest.approx(width(found, "plain"), rel=0.01)
    assert abs(np.mean([one.power for one in found])) < 0.01


def directly(cheap: Numbers, probability: Numbers, judged: Flags, scored: Flags, score: Numbers) -> dict[str, float]:
    """The same from arrays: the linear form of each trace, and the power by a search."""
    n, w = len(cheap), np.where(judged, 1 / probability, 0.0)
    v = w * n / w.sum()
    mean_y = np.average(score, weights=w * scored)
    mean_h = np.average(cheap, weights=w)
    z = scored * (score - mean_y) / ((w * scored).sum() / w.sum())

    def error(power: float) -> float:
        return float(np.sqrt(((power * (cheap - cheap.mean()) + v * (z - power * (cheap - mean_h))) ** 2).sum()) / n)

    low, high = -10.0, 10.0
    for _ in range(200):
        third = (high - low) / 3
        low, high = (low, high - third) if error(low + third) < error(high - third) else (low + third, high)
    value = mean_y + low * (cheap.mean() - mean_h)
    return {"value": value, "error": error(low), "plain_error": error(0.0), "power": low}


@pytest.mark.parametrize("seed", range(5))
def test_sums_give_what_the_linear_forms_of_all_traces_give(seed: int) -> None:
    rng = np.random.default_rng(seed)
    traffic = not_always_applicable(rng, (1, 3_000))
    probability = active(traffic)
    judged = (rng.random(probability.shape) < probability) & at_random(rng, traffic)
    scored = judged & traffic.applies
    terms = row_sums(traffic.cheap, 1 / probability, judged * 1.0, np.where(scored, traffic.score, 0.0), scored * 1.0)
    made = estimate({name: float(term.sum()) for name, term in terms.items()})
    assert made is not None
    expected = directly(traffic.cheap[0], probability[0], judged[0], scored[0], traffic.score[0])
    assert made.mean.value == pytest.approx(expected["value"], abs=1e-7)
    assert made.power == pytest.approx(expected["power"], abs=1e-5)
    saved = made.judged * ((expected["plain_error"] / expected["error"]) ** 2 - 1)
    assert made.saved == pytest.approx(saved, rel=1e-5)


def test_it_agrees_with_glide() -> None:
    """Values of glide-py 0.11.0 (ASIMeanEstimator, with and without tuning), which needs a newer Python than we test.

    It divides by the number of traces where we divide by the sum of the weights; here both are the same. Tuned, its
    power is from sums that are not centred, so that the two differ by a tenth of an error.
    """
    rng = np.random.default_rng(7)
    cheap = rng.beta(4, 2, 4_000)
    score = np.clip(cheap + rng.normal(0, 0.15, 4_000), 0, 1)
    judged = np.zeros(4_000, bool)
    judged[rng.permutation(4_000)[:400]] = True
    flags = judged * 1.0
    terms = row_sums(cheap, np.full(4_000, 10.0), flags, np.where(judged, score, 0.0), flags)
    sums = {name: float(term.sum()) for name, term in terms.items()}
    plain, tuned = estimate(sums, power=1.0), estimate(sums)
    assert plain is not None
    assert tuned is not None
    assert plain.mean.value == pytest.approx(0.6745526090280413, abs=1e-12)
    assert _half_width(plain) / 1.966 == pytest.approx(0.007270018445069043, rel=0.002)
    assert tuned.mean.value == pytest.approx(0.6745846373651962, abs=0.1 * 0.0073)
    assert _half_width(tuned) / 1.966 == pytest.approx(0.007267410793939058, rel=0.01)


def _half_width(made: Estimate) -> float:
    assert made.mean.low is not None
    assert made.mean.high is not None
    return (made.mean.high - made.mean.low) / 2


def by_hand(times: int) -> Estimate:
    some = ((0, 0.2), (0, None), (1, 0.8), (1, None)) * times
    rows = [parts_of("m", f, 2.0, judged=y is not None, score=y) for f, y in some]
    made = estimate(add_sums(sums_of("m", row) for row in rows))
    assert made is not None
    return made


def test_by_hand() -> None:
    """Half of the traces judged, each with the probability 1/2: f = 0 or 1, and y = 0.2 of a 0, 0.8 of a 1."""
    made = by_hand(5)
    assert made.plain.value == pytest.approx(0.5)
    assert made.mean.value == pytest.approx(0.5), "the sample has as many ones as the traffic"
    assert made.power == pytest.approx(0.6)
    assert (made.traces, made.judged, made.scored) == (20, 10, 10)
    assert by_hand(2).power == 0.0, "of four scores"
    assert by_hand(1).mean.low is None, "of two"


def test_where_scores_do_not_vary_there_is_no_interval() -> None:
    rows = [parts_of("m", f, 1.0, judged=True, score=1.0) for f in (0.1, 0.5, 0.7, 0.9)]
    made = estimate(add_sums(sums_of("m", row) for row in rows))
    assert made is not None
    assert (made.mean.value, made.mean.low, made.saved) == (1.0, None, 0.0)


def test_without_a_score_there_is_no_estimate() -> None:
    unseen = parts_of("m", 0.5, 50.0, judged=False, score=None)
    assert unseen == {"ppi.m.n": 1.0, "ppi.m.f": 0.5, "ppi.m.ff": 0.25}, "a row outside the sample is small"
    assert estimate(sums_of("m", unseen)) is None
    assert estimate(sums_of("m", parts_of("m", 0.5, 50.0, judged=True, score=None))) is None
    assert estimate({}) is None


Row = tuple[float, float, bool, float | None]
rows = st.tuples(
    st.floats(0, 1), st.floats(0.02, 1), st.booleans(), st.one_of(st.none(), st.floats(0, 1))
)  # companion, probability, judged, score


def _parts(row: Row) -> Mapping[str, float]:
    cheap, probability, judged, score = row
    return sums_of("m", parts_of("m", cheap, 1 / probability, judged=judged, score=score if judged else None))


@given(st.lists(rows, min_size=1, max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_windows_that_are_merged_give_the_estimate_of_their_union(some: list[Row], cuts: list[int]) -> None:
    union = add_sums(map(_parts, some))
    ends = [0, *sorted(min(cut, len(some)) for cut in cuts), len(some)]
    merged = add_sums(add_sums(map(_parts, some[start:end])) for start, end in pairwise(ends))
    assert merged == pytest.approx(union)
    whole, made = estimate(union), estimate(merged)
    assert (whole is None) == (made is None)
    if whole is not None and made is not None:
        assert made.plain.value == pytest.approx(whole.plain.value)
        assert 0 <= made.plain.value <= 1 + 1e-9
        assert made.mean.value == pytest.approx(whole.mean.value, abs=1e-5)
        assert made.saved >= -1e-6
