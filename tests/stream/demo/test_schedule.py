from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.stream.demo.faults import FAULTS
from ragtide.stream.demo.schedule import FIRST_S, Schedule


def test_by_default_the_first_fault_is_on_from_30_to_75_s() -> None:
    schedule = Schedule()
    first = next(schedule.episodes())
    assert (first.start_s, first.end_s, first.fault.name) == (30.0, 75.0, "wrong_chunks")
    assert [schedule.at(at) for at in (0.0, 29.9, 30.0, 74.9, 75.0)] == [None, None, first, first, None]


def test_without_a_seed_the_faults_come_in_the_order_of_their_table() -> None:
    assert [episode.fault.name for episode in islice(Schedule().episodes(), 6)] == [*FAULTS, "wrong_chunks"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_named_fault_is_the_only_one(fault: str) -> None:
    assert {episode.fault.name for episode in islice(Schedule(fault, seed=5).episodes(), 8)} == {fault}


@given(seed=st.none() | st.integers(), fault=st.none() | st.sampled_from(list(FAULTS)))
def test_whatever_the_seed_nothing_is_wrong_at_first_and_faults_do_not_overlap(
    seed: int | None, fault: str | None
) -> None:
    episodes = list(islice(Schedule(fault, seed).episodes(), 12))
    assert episodes == list(islice(Schedule(fault, seed).episodes(), 12))
    assert episodes[0].start_s >= FIRST_S
    for before, after in pairwise(episodes):
        assert before.start_s < before.end_s <= after.start_s - 60
    middle = episodes[3]
    assert Schedule(fault, seed).at((middle.start_s + middle.end_s) / 2) == middle


def test_seeds_differ() -> None:
    orders = {tuple(episode.fault.name for episode in islice(Schedule(seed=seed).episodes(), 5)) for seed in range(20)}
    assert len(orders) > 5
    assert all(sorted(order) == sorted(FAULTS) for order in orders)
