"""Simulated applications: what breathes stays quiet, what changes is found, in pieces as in one run."""

import numpy as np
import pytest

from benchmarks.questions.world import DAY_S, HOUR_S, START, Change, World, steady
from ragtide.drift.detectors import serialization
from ragtide.drift.input_drift.check import SourceProcessor
from ragtide.drift.input_drift.reference import InputDriftState, ReferenceLearner
from ragtide.drift.input_drift.source import QuestionSource

ASKED = QuestionSource("shop", "prod", "e@1")
CHANGED = START + 30 * HOUR_S


def new_topic(share: float, until: float = np.inf) -> Change:
    return lambda second: share if CHANGED - START <= second < until else 0.0


def runner(change: Change = steady, seed: int = 1, basis: int = 0) -> SourceProcessor:
    world = World(seed, change, an_hour=30, dimension=16)
    return SourceProcessor(ReferenceLearner(world, history_days=14), ASKED, None, basis)


def run(one: SourceProcessor, until: int, state: InputDriftState | None = None) -> InputDriftState:
    found = one.advance(state, until)
    assert found is not None
    return found


def again(state: InputDriftState) -> InputDriftState:
    """As another leader reads it."""
    return serialization.from_bytes(InputDriftState, serialization.to_bytes(state, 1), 1)


@pytest.mark.parametrize("seed", range(2))
def test_rhythm_repeats_eager_clients_and_weekends_are_no_drift(seed: int) -> None:
    one = runner(seed=seed)
    state = run(one, START + HOUR_S)
    for day in range(7):
        state = run(one, START + (day + 1) * DAY_S, state)
        assert not state.day_drifted
    assert not len(state.excluded_days), "no tick of the week was in alarm"


def test_a_new_topic_is_found_shown_and_over_when_it_is_gone() -> None:
    one = runner(new_topic(0.5, 54 * HOUR_S))
    state = run(one, CHANGED, run(one, START + HOUR_S))
    assert not state.groups_in_alarm
    state = run(one, CHANGED + 6 * HOUR_S, state)
    assert state.groups_in_alarm
    state = run(one, START + 2 * DAY_S, state)
    assert state.day_drifted
    found = one.compare_day(state, START + DAY_S)
    assert found.test is not None
    assert found.test.low > 0.55
    assert all(id_.startswith("new") for id_ in found.most_unusual(10))
    state = run(one, START + 4 * DAY_S, state)
    assert (state.groups_in_alarm, state.day_drifted) == (False, False)
    assert (state.excluded_days // DAY_S * DAY_S == state.excluded_days).all()
    assert set(state.excluded_days.tolist()) >= {START + DAY_S, START + 2 * DAY_S}
    assert not set(run(one, START + 9 * DAY_S, state).reference.days) & {START + DAY_S, START + 2 * DAY_S}


def test_a_topic_that_grows_for_days_is_found() -> None:
    one = runner(lambda second: min(max(second - DAY_S, 0) / (5 * DAY_S), 1) * 0.4)
    state = run(one, START + 5 * DAY_S, run(one, START + HOUR_S))
    assert state.groups_in_alarm
    assert state.day_drifted


def test_pieces_and_restarts_leave_what_one_run_leaves() -> None:
    one, end = runner(new_topic(0.3)), START + 2 * DAY_S + 3 * HOUR_S
    state = run(one, START + HOUR_S)
    for until in (START + 7 * HOUR_S, START + DAY_S, START + DAY_S + 900, CHANGED + 4 * HOUR_S, end):
        state = run(one, until, again(state))
    assert state.groups_in_alarm
    whole = run(one, end, run(one, START + 900))
    assert serialization.to_bytes(state, 1) == serialization.to_bytes(whole, 1)


def test_what_is_amiss_never_becomes_usual_unless_a_person_says_so() -> None:
    change = new_topic(0.4)
    one = runner(change)
    state = run(one, START + 8 * DAY_S, run(one, START + 3 * DAY_S, run(one, START + HOUR_S)))
    assert state.groups_in_alarm
    assert state.reference.learned_at == START
    accepted = run(runner(change, basis=CHANGED), START + 8 * DAY_S + 900, state)
    assert (accepted.groups_in_alarm, accepted.day_drifted, accepted.reference.since) == (False, False, CHANGED)
    assert not run(runner(change, basis=CHANGED), START + 9 * DAY_S, accepted).groups_in_alarm


def test_a_reference_of_few_hours_is_not_watched_by() -> None:
    world = World(1, an_hour=30, dimension=16)
    one = SourceProcessor(ReferenceLearner(world, history_days=14), ASKED, None, basis=START - 6 * HOUR_S)
    state = run(one, START)
    assert state.reference.baseline.warm_up_reasons() == ["less than a day of history"]
    assert not state.reference.baseline.active.any()
    assert not run(one, START + DAY_S + 900, state).reference.baseline.warm_up_reasons()[0], "a day later it is"
    silent = World(1, an_hour=0, dimension=16)
    assert SourceProcessor(ReferenceLearner(silent, history_days=14), ASKED, None, 0).advance(None, START) is None
