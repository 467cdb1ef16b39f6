"""What people would say, from labels of a sample: by simulated worlds, against row-wise arithmetic, and merged."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from ragtide.evaluators.label_estimates import FEWEST, SUMS, PeopleEstimate, estimate, row_sums
from ragtide.evaluators.prediction_powered import WeightedMean, parts_of
from ragtide.evaluators.prediction_powered import estimate as estimate_of_window

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
WORLDS = 2_000
TRACES = 20_000


@dataclass(frozen=True)
class World:
    """Traces of some worlds, one world a row: the judge's score, people's verdict, and how they are drawn."""

    score: Numbers
    verdict: Numbers
    judged: Numbers  # probability
    labelled: Numbers  # probability, if judged
    truth: float


def thumbs(rng: np.random.Generator, shape: tuple[int, int], noise: float = 0.0) -> World:
    """People like 8 of 10 answers, and err in a share `noise`; the judge sees much of what they see."""
    good = rng.random(shape) < 0.8
    score = np.clip(0.35 + 0.4 * good + rng.normal(0, 0.2, shape), 0, 1)
    verdict = (good ^ (rng.random(shape) < noise)).astype(float)
    share = np.full(shape, 0.05)
    return World(score, verdict, share, 3 * share, 0.8 * (1 - noise) + 0.2 * noise)


def noisy_thumbs(rng: np.random.Generator, shape: tuple[int, int]) -> World:
    return thumbs(rng, shape, noise=0.15)


def scores(rng: np.random.Generator, shape: tuple[int, int]) -> World:
    """People's scores from 1 to 5 on a scale of their own, and a judge whose mean is far from theirs."""
    quality = rng.normal(size=shape)
    score = np.clip(0.8 + 0.1 * (0.8 * quality + 0.6 * rng.normal(size=shape)), 0, 1)
    verdict = 3.0 + 0.7 * quality + rng.normal(0, 0.5, shape)
    return World(score, verdict, np.full(shape, 0.1), np.full(shape, 0.05), 3.0)


def rules_for_bad_ones(rng: np.random.Generator, shape: tuple[int, int]) -> World:
    """Worse answers are judged five times as often, and two applications have samples of their own."""
    plain = noisy_thumbs(rng, shape)
    cheap = plain.score + rng.normal(0, 0.2, shape)
    app = np.arange(shape[1]) % 2 == 0
    judged = np.where(cheap < 0.4, 0.25, 0.05)
    return World(plain.score, plain.verdict, judged, np.broadcast_to(np.where(app, 0.05, 0.2), shape), plain.truth)


def few(rng: np.random.Generator, shape: tuple[int, int]) -> World:
    """One trace of 250 has a label."""
    plain = noisy_thumbs(rng, shape)
    return World(plain.score, plain.verdict, np.full(shape, 0.1), np.full(shape, 0.04), plain.truth)


def estimates(world: World, labelled: Flags, judged: Flags) -> Iterator[PeopleEstimate]:
    of, _ = judged.nonzero()
    given = labelled[judged] * 1.0
    rows = row_sums(1 / world.judged[judged], world.score[judged], world.labelled[judged], world.verdict[judged], given)
    sums = {name: np.bincount(of, weights=row, minlength=len(judged)) for name, row in rows.items()}
    for at in range(len(judged)):
        made = estimate({name: float(column[at]) for name, column in sums.items()})
        assert made is not None
        yield made


def worlds(make: Callable[[np.random.Generator, tuple[int, int]], World]) -> tuple[list[PeopleEstimate], float]:
    rng = np.random.default_rng(3)
    found: list[PeopleEstimate] = []
    truth = 0.0
    for _ in range(WORLDS // 100):
        world = make(rng, (100, TRACES))
        judged = rng.random(world.judged.shape) < world.judged
        labelled = judged & (rng.random(judged.shape) < world.labelled)
        truth = world.truth
        found += estimates(world, labelled, judged)
    return found, truth


def coverage(means: Sequence[WeightedMean], truth: float) -> float:
    """Return the share of the intervals that hold the truth; hardly any world has too few labels for one."""
    held = [one.low <= truth <= one.high for one in means if one.low is not None and one.high is not None]
    assert len(held) >= 0.9 * len(means)
    return sum(held) / len(held)


def width(means: Sequence[WeightedMean]) -> float:
    widths = [one.high - one.low for one in means if one.high is not None and one.low is not None]
    return float(np.mean(widths))


@pytest.mark.parametrize("make", [thumbs, noisy_thumbs, scores, rules_for_bad_ones, few])
def test_95_percent_of_the_intervals_hold_what_people_would_say(
    make: Callable[[np.random.Generator, tuple[int, int]], World],
) -> None:
    found, truth = worlds(make)
    means, plain = [one.mean for one in found], [one.plain for one in found]
    assert abs(coverage(means, truth) - 0.95) <= 0.015
    assert abs(coverage(plain, truth) - 0.95) <= 0.02
    assert abs(np.mean([one.value for one in means]) - truth) < 0.005
    assert width(means) < 0.97 * width(plain)
    coverages = [one.coverage for one in found if one.coverage is not None]
    assert len(coverages) == (0 if make is rules_for_bad_ones else WORLDS), "unknown with samples of several rates"
    assert not coverages or np.mean(coverages) == pytest.approx(1.0, abs=0.01)


def test_labels_of_people_who_complain_are_no_sample() -> None:
    """Why labels count only if their trace was drawn: those of users who dislike the answer miss the truth by far."""
    rng = np.random.default_rng(1)
    world = thumbs(rng, (100, TRACES))
    judged = rng.random(world.judged.shape) < world.judged
    complains = judged & (rng.random(judged.shape) < np.where(world.verdict == 1, 0.01, 0.3))
    everything = World(world.score, world.verdict, world.judged, np.ones_like(world.judged), world.truth)
    made = list(estimates(everything, complains, judged))
    assert coverage([one.mean for one in made], world.truth) == 0.0
    assert max(one.coverage or 0.0 for one in made) < 0.15, "and the coverage shows it"


def test_sums_give_what_the_linear_forms_of_all_traces_give() -> None:
    rng = np.random.default_rng(2)
    world = rules_for_bad_ones(rng, (1, 40_000))
    judged = rng.random(world.judged.shape) < world.judged
    labelled = (rng.random(judged.shape) < world.labelled)[judged]
    b, f, r, y = (one[judged] for one in (1 / world.judged, world.score, world.labelled, world.verdict))
    made = estimate({name: float(row.sum()) for name, row in row_sums(b, f, r, y, labelled * 1.0).items()})
    assert made is not None

    w = np.where(labelled, b / r, 0.0)
    all_f, labelled_f, people = np.average(f, weights=b), np.average(f, weights=w), np.average(y, weights=w)

    def error(power: float) -> float:
        in_y = b.sum() / w.sum() * w * (y - people - power * (f - labelled_f))
        return float(np.sqrt(((power * b * (f - all_f) + in_y) ** 2).sum()) / b.sum())

    best = min(np.linspace(-3, 3, 60_001), key=error)
    assert made.power == pytest.approx(best, abs=2e-4)
    assert made.mean.value == pytest.approx(people + best * (all_f - labelled_f), abs=1e-5)
    assert made.saved == pytest.approx(made.labelled * ((error(0) / error(best)) ** 2 - 1), rel=1e-5)
    assert (made.judged, made.labelled) == (judged.sum(), labelled.sum())


def test_where_every_trace_is_judged_it_is_the_estimate_of_windows_with_people_as_judge() -> None:
    rng = np.random.default_rng(4)
    rows: list[Mapping[str, float]] = []
    windows: dict[str, float] = {}
    for _ in range(400):
        f, is_labelled = float(rng.random()), bool(rng.random() < 0.2)
        y = float(rng.random() < f)
        rows.append(row_sums(1.0, f, 0.2, y, float(is_labelled)))
        for name, value in parts_of("m", f, 5.0, judged=is_labelled, score=y if is_labelled else None).items():
            windows[name.removeprefix("ppi.m.")] = windows.get(name.removeprefix("ppi.m."), 0.0) + value
    made = estimate({name: sum(row[name] for row in rows) for name in SUMS})
    same = estimate_of_window(windows)
    assert made is not None
    assert same is not None
    for own, of_window in ((made.mean, same.mean), (made.plain, same.plain)):
        assert own.value == pytest.approx(of_window.value)
        assert own.low == pytest.approx(of_window.low, abs=0.002), "the correction for few labels differs"
    assert made.saved == pytest.approx(same.saved)


def test_by_hand() -> None:
    """Twenty traces are judged, each of two; half of each kind is labelled: y is 0 where f is, and 1 or 0 else."""
    some = [(0, 0), (0, None), (1, 1), (1, None)] * 4 + [(1, 0), (1, None), (0, 0), (0, None)]
    rows = [row_sums(2.0, f, 0.5, 0 if y is None else y, y is not None) for f, y in some]
    made = estimate({name: float(sum(row[name] for row in rows)) for name in SUMS})
    assert made is not None
    assert (made.judged, made.labelled, made.coverage) == (20, 10, 1.0)
    assert made.plain.value == pytest.approx(0.4)
    assert made.mean.value == pytest.approx(0.4), "the labelled half has as many ones as all judged traces"
    assert made.power == pytest.approx(0.8), "the slope of y over f: 4 of the 5 answers with f = 1 are good"


def test_without_a_label_or_where_all_agree_there_is_no_interval() -> None:
    unlabelled = row_sums(2.0, 0.5, 1.0, 0.0, 0.0)
    assert estimate(unlabelled) is None
    alike = [row_sums(2.0, f, 0.5, 1.0, 1.0) for f in (0.1, 0.5, 0.7, 0.9)] * FEWEST
    made = estimate({name: sum(row[name] for row in alike) for name in SUMS})
    assert made is not None
    assert (made.mean, made.saved) == (WeightedMean(1.0), 0.0)


def test_labels_that_one_heavy_one_outweighs_have_no_interval() -> None:
    """A hundred labels whose weights leave 2.2 degrees of freedom, and as many with equal weights."""
    heavy, alike = (
        [row_sums(first if at == 0 else 1.0, at / 100, 1.0, at % 2, 1.0) for at in range(100)] for first in (30.0, 1.0)
    )
    some, enough = (estimate({name: float(sum(row[name] for row in part)) for name in SUMS}) for part in (heavy, alike))
    assert some is not None
    assert enough is not None
    assert (some.mean.low, some.plain.low) == (None, None)
    assert enough.mean.low is not None


def test_too_few_labels_have_no_interval() -> None:
    rows = [row_sums(2.0, at / FEWEST, 0.5, float(at % 3 == 0), 1.0) for at in range(FEWEST)]
    some, enough = (estimate({name: sum(row[name] for row in part) for name in SUMS}) for part in (rows[1:], rows))
    assert some is not None
    assert enough is not None
    assert (some.mean.low, some.plain.low) == (None, None)
    assert enough.mean.low is not None
