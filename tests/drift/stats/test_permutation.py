"""The permutation test of repeated measurements: exact where it must be, a bound elsewhere."""

from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.drift.stats import Remeasured, permutation_p

VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=3, max_size=3)


def exact_p(subjects: list[Remeasured]) -> float:
    """All ways to choose the later values of every subject, one by one."""
    choices = []
    for one in subjects:
        values, later = [*one.before, *one.after], len(one.after)
        choices.append(
            [
                sum(values[at] for at in chosen) / later
                - sum(value for at, value in enumerate(values) if at not in chosen) / (len(values) - later)
                for chosen in combinations(range(len(values)), later)
            ]
        )
    sums = np.array([sum(picked) for picked in product(*choices)])
    observed = sum(one.difference for one in subjects)
    return float(min(1.0, 2 * min((sums >= observed - 1e-9).mean(), (sums <= observed + 1e-9).mean())))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=3))
def test_it_bounds_the_exact_p_value(drawn: list[tuple[list[float], list[float]]]) -> None:
    subjects = [Remeasured(before, after[:2]) for before, after in drawn]
    assert exact_p(subjects) <= permutation_p(subjects) * (1 + 1e-6) <= 1 + 1e-6


@pytest.mark.parametrize("moved", [1, 3, 6])
def test_it_is_exact_where_every_moved_subject_is_at_its_extreme(moved: int) -> None:
    steady = [Remeasured([1.0] * 5, [1.0] * 3)] * 10
    fell = [Remeasured([1.0] * 5, [0.0] * 3)] * moved
    assert permutation_p([*steady, *fell]) == pytest.approx(min(1.0, 2 / comb(8, 3) ** moved), rel=1e-3)


def test_it_is_the_same_up_and_down_and_in_any_unit() -> None:
    fell = [Remeasured([0.9, 0.8, 0.85], [0.5, 0.6]), Remeasured([0.3, 0.2, 0.25], [0.2, 0.1])]
    rose = [Remeasured([-v for v in one.before], [-v for v in one.after]) for one in fell]
    scaled = [Remeasured([1e6 * v for v in one.before], [1e6 * v for v in one.after]) for one in fell]
    assert permutation_p(fell) == pytest.approx(permutation_p(rose)) == pytest.approx(permutation_p(scaled))


def test_without_subjects_or_changes_nothing_is_significant() -> None:
    assert permutation_p([]) == 1.0
    assert permutation_p([Remeasured([0.5] * 5, [0.5])] * 30) == 1.0
