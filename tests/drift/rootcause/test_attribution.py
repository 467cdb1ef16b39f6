"""The test of a split: exact where it can be, and what it finds in simulated traffic with and without a culprit."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ragtide.drift.rootcause import attribution
from ragtide.drift.rootcause.attribution import ALPHA, main_contributor, permutation_p_values, permuted_labels
from ragtide.drift.rootcause.slices import Numbers, Split, Sums, split_of

TIMES, PER_TIME = 125, 120


def marks(after: int, times: int = TIMES) -> Any:
    return np.arange(times) >= times - after


def simulated(
    seed: int,
    *,
    after: int = 5,
    fall: float = 0.0,
    hit: tuple[int, int, float] | None = None,
    wander: float = 0.0,
    sizes: tuple[int, ...] = (500, 5, 3),
) -> list[Split]:
    """Scores of 120 records a time, mean 0.75 and deviation 0.14, split by dimensions that know nothing of each other.

    The first groups of a dimension are the largest (Zipf). Since the onset all fall by `fall`, and of dimension
    `hit[0]` group `hit[1]` by `hit[2]` more, which the other dimensions see as a fall of all. `wander` is the step of
    an autoregression (0.9 a time) of every group by itself.
    """
    random, since = np.random.default_rng(seed), marks(after)
    splits = []
    for dimension, size in enumerate(sizes):
        weights = weights_of(size)
        means = np.full((TIMES, size), 0.75)
        steps = random.normal(0, wander, (TIMES, size))
        for time in range(1, TIMES if wander else 1):
            steps[time] += 0.9 * steps[time - 1]
        means += steps - fall * since[:, None]
        if hit and hit[0] == dimension:
            means[since, hit[1]] -= hit[2]
        elif hit:
            means[since] -= hit[2] * weights_of(sizes[hit[0]])[hit[1]]
        n = random.poisson(PER_TIME * weights, (TIMES, size)).astype(float)
        total = n * means + np.sqrt(n) * random.normal(0, 0.14, (TIMES, size))
        large = np.flatnonzero(n.sum(axis=0) >= 0.01 * n.sum())
        sums = (n, total, n * (means**2 + 0.14**2))
        groups = {str(group): Sums(*(one[:, group] for one in sums)) for group in large}
        splits.append(split_of(f"d{dimension}", groups, Sums(*(one.sum(axis=1) for one in sums)), since))
    return splits


def weights_of(size: int) -> Numbers:
    weights = 1 / np.arange(1, size + 1)
    return np.asarray(weights / weights.sum())


def found(seeds: int, **world: Any) -> list[tuple[str, str] | None]:
    culprits = [main_contributor(simulated(seed, **world), seed) for seed in range(seeds)]
    return [one and (one.dimension, one.value) for one in culprits]


@pytest.mark.parametrize(
    "world",
    [{}, {"fall": 0.2}, {"wander": 0.01, "fall": 0.1, "after": 15}],
    ids=["nothing moves", "all fall alike", "groups wander and all fall"],
)
def test_where_no_group_moves_apart_nothing_explains_it(world: dict[str, Any]) -> None:
    assert found(20, **world).count(None) >= 19


@pytest.mark.parametrize(
    "hit", [(1, 0, 0.1), (0, 3, 0.4), (2, 2, 0.2)], ids=["a common one", "one of 500", "the rarest of three"]
)
def test_a_group_that_fell_is_found(hit: tuple[int, int, float]) -> None:
    right = (f"d{hit[0]}", str(hit[1]))
    assert found(6, hit=hit).count(right) >= 5


def test_a_group_that_fell_is_found_while_all_do() -> None:
    assert found(6, hit=(0, 1, 0.4), fall=0.03, wander=0.005).count(("d0", "1")) >= 5


def test_p_is_that_of_all_permutations() -> None:
    """Against every labelling tried by hand: one group of two, one time after, so each time stands once for it."""
    random = np.random.default_rng(3)
    n = np.full((30, 2), 10.0)
    total = n * random.normal(0.5, 0.1, (30, 2))
    since = marks(1, 30)
    parted = Split("d", ("a",), n, total, total, since)
    apart = [_changed(n, total, np.arange(30) == time) for time in range(30)]
    exact = np.mean([one <= apart[-1] for one in apart])
    (p,) = permutation_p_values([parted], [-1.0], permuted_labels(since, 1, 20_000))
    assert p[0] == pytest.approx(exact, abs=0.01)


def _changed(n: Numbers, total: Numbers, after: Any) -> float:
    """By how much the first group's deviations from the level, and from what both moved together, changed a record."""
    records, own = n.sum(axis=1), total.sum(axis=0) / n.sum(axis=0)
    together = (total - n * own).sum(axis=1) / records
    deviations = total[:, 0] - n[:, 0] * (total.sum() / n.sum() + together)
    return float(deviations[after].sum() / records[after].sum() - deviations[~after].sum() / records[~after].sum())


@pytest.mark.parametrize(("after", "times"), [(1, 30), (5, 125), (40, 100), (99, 100)])
def test_labels_keep_their_number_and_stand_in_blocks(after: int, times: int) -> None:
    permuted = permuted_labels(marks(after, times), seed=1, permutations=200)
    assert (permuted.sum(axis=1) == after).all()
    assert len(np.unique(permuted, axis=0)) >= min(times, 20)
    runs = (np.diff(permuted, axis=1, append=permuted[:, :1]) == 1).sum(axis=1)
    assert runs.max() <= 9
    assert (permuted == permuted_labels(marks(after, times), seed=1, permutations=200)).all()


def test_the_more_groups_are_tried_the_less_surprising_one_is() -> None:
    splits = simulated(5, hit=(2, 2, 0.04))
    permuted = permuted_labels(splits[0].after, 5)
    alone = permutation_p_values(splits[2:], [-1.0], permuted)[0]
    among = permutation_p_values(splits, [-1.0] * 3, permuted)[2]
    assert (among >= alone).all()
    assert among.sum() > alone.sum()


def test_too_few_times_tell_nothing() -> None:
    since = marks(3, 12)
    n = np.full((12, 2), 100.0)
    total = n * np.where(since, 0.1, 0.9)[:, None]
    total[:, 1] = 90.0
    assert main_contributor([Split("d", ("a",), n, total, total, since)], 1) is None
    silent = np.zeros((200, 2))  # times without traffic make them no more
    longer = (
        np.vstack([silent, n]),
        np.vstack([silent, total]),
        np.vstack([silent, total]),
        np.concatenate([np.zeros(200, dtype=bool), since]),
    )
    assert main_contributor([Split("d", ("a",), *longer)], 1) is None


def test_the_smaller_group_is_named_where_two_hold_the_same_fall() -> None:
    """All of the fall is in a tenth of the records, and so in the half that holds them."""
    since = marks(5)
    n = np.tile([10.0, 90.0], (TIMES, 1)) * 10
    random = np.random.default_rng(1)
    noise = random.normal(0, 1, (TIMES, 3))
    tenth, rest = 90 - 40 * since + noise[:, 0], 810 + noise[:, 1:].sum(axis=1)
    half = 405 + noise[:, 1]
    of_narrow, of_wide = np.column_stack([tenth, rest]), np.column_stack([tenth + rest - half, half])
    narrow = Split("tenant", ("acme",), n, of_narrow, of_narrow, since)
    wide = Split("language", ("de",), np.full((TIMES, 2), 500.0), of_wide, of_wide, since)
    one = main_contributor([wide, narrow], 1)
    assert one is not None
    assert (one.value, one.p <= ALPHA) == ("acme", True)
    assert main_contributor([wide], 1) is not None


def test_a_rate_that_rises_for_all_varies_more_and_still_has_no_culprit() -> None:
    """From 2 % to 50 % in 3 times: by permutation alone one of 20 small groups often stands out."""
    found = []
    for seed in range(20):
        random, since = np.random.default_rng(seed), marks(3)
        n = np.full((TIMES, 21), 3.0)
        total = random.binomial(3, np.where(since, 0.5, 0.02)[:, None], n.shape).astype(float)
        n[:, -1] = total[:, -1] = 0
        split = Split("tenant", tuple(map(str, range(20))), n, total, total, since)
        found.append(main_contributor([split], seed))
    assert found.count(None) >= 19


def test_sampling_by_hand() -> None:
    """Halves of 200 before and 200 after; one from 50 to 90 of 100, the other at 50 of 100 (variance 25 / 99).

    Apart 0.25 · 0.4 = 0.1; no mix, since the shares are the same. error² = (3 · 25 + 9) / 99 / 100 / 16 of the means,
    and 0.1² · 0.25 · 2 / 200 of the shares: the group's middle, 0.7, is 0.1 off that of the whole.
    """
    n = np.array([[100.0, 100.0], [100.0, 100.0]])
    total = np.array([[50.0, 50.0], [90.0, 50.0]])
    split = Split("d", ("a",), n, total, total, np.array([False, True]))
    error = ((75 + 9) / 99 / 100 / 16 + 0.01 / 4 / 100) ** 0.5
    (p,) = attribution.sampling_p_values(split, 1.0, tested=3)
    assert p == pytest.approx(3 * stats.norm.sf(0.1 / error))
    (other,) = attribution.sampling_p_values(split, -1.0, tested=3)
    assert other == 1.0
