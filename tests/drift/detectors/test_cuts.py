"""A run over some windows and then over the next ones leaves what one run over all of them leaves, bit for bit."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.drift.detectors import run_state, serialization
from ragtide.drift.detectors.arrays import cut
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.run_state import State
from tests.drift.detectors.worlds import DAY, KINDS

HISTORY, WINDOWS = 3 * DAY, 3 * DAY + 150
BATCHES = {kind: one.made(WINDOWS, 5, 7, HISTORY + 50) for kind, one in KINDS.items()}
BASELINES = {kind: one.fit(cut(BATCHES[kind], slice(0, HISTORY))) for kind, one in KINDS.items()}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, deadline=None)
@given(cuts=st.sets(st.integers(HISTORY + 1, WINDOWS - 1), max_size=12), kept=st.booleans())
def test_cuts_do_not_show(kind: str, cuts: set[int], kept: bool) -> None:
    batch, baseline, run = BATCHES[kind], BASELINES[kind], KINDS[kind].run
    whole, state = run_state.start_state(baseline), run_state.start_state(baseline)
    at_once = run(baseline, whole, cut(batch, slice(HISTORY, WINDOWS)))
    borders = [HISTORY, *sorted(cuts), WINDOWS]
    parts = []
    for first, last in pairwise(borders):
        parts.append(run(baseline, state, cut(batch, slice(first, last))))
        if kept:
            state = serialization.from_bytes(
                State, serialization.to_bytes(state, run_state.STATE_VERSION), run_state.STATE_VERSION
            )
    assert np.concatenate([part.evidence for part in parts], axis=1).tobytes() == at_once.evidence.tobytes()
    assert np.concatenate([part.alarm for part in parts], axis=1).tobytes() == at_once.alarm.tobytes()
    assert serialization.to_bytes(state, 1) == serialization.to_bytes(whole, 1)
    assert at_once.alarm.any()


@pytest.mark.parametrize("kind", KINDS)
def test_late_windows_are_taken_in_from_a_kept_state(kind: str) -> None:
    """The first run saw half of the records; going back to the state before, the second one sees all."""
    batch, baseline, run = BATCHES[kind], BASELINES[kind], KINDS[kind].run
    state = run_state.start_state(baseline)
    run(baseline, state, cut(batch, slice(HISTORY, HISTORY + 40)))
    kept = serialization.take(state, np.arange(len(state.until)))
    other = KINDS[kind].made(WINDOWS, 5, 8, HISTORY)
    run(baseline, state, cut(other, slice(HISTORY + 40, HISTORY + 60)))
    assert serialization.to_bytes(kept, 1) != serialization.to_bytes(state, 1)
    run(baseline, kept, cut(batch, slice(HISTORY + 40, WINDOWS)))
    whole = run_state.start_state(baseline)
    run(baseline, whole, cut(batch, slice(HISTORY, WINDOWS)))
    assert serialization.to_bytes(kept, 1) == serialization.to_bytes(whole, 1)


def test_windows_are_not_looked_at_twice() -> None:
    batch, baseline = BATCHES["rates"], BASELINES["rates"]
    state = run_state.start_state(baseline)
    KINDS["rates"].run(baseline, state, cut(batch, slice(HISTORY, HISTORY + 4)))
    with pytest.raises(ValueError, match="looked at before"):
        KINDS["rates"].run(baseline, state, cut(batch, slice(HISTORY + 3, HISTORY + 5)))


def test_windows_of_another_size_are_refused() -> None:
    batch, baseline = BATCHES["rates"], BASELINES["rates"]
    shifted = type(batch)(batch.start[:4] + 60, batch.n[:, :4], batch.hits[:, :4])
    with pytest.raises(ValueError, match="grid of 300 s"):
        KINDS["rates"].run(baseline, run_state.start_state(baseline), shifted)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_is_small(kind: str) -> None:
    """Bytes of a series after a week of levels: channels share most of them."""
    baseline, batch = BASELINES[kind], BATCHES[kind]
    state = run_state.start_state(baseline)
    KINDS[kind].run(baseline, state, cut(batch, slice(HISTORY, WINDOWS)))
    series, channels = baseline.level.shape[:2]
    assert len(serialization.to_bytes(state, 1)) / series < 500 + 200 * channels
    assert len(serialization.to_bytes(baseline, 1)) / series < 500 + 300 * channels


def test_baselines_and_states_of_series_are_taken_and_joined() -> None:
    baseline: Baseline = BASELINES["scores"]
    halves = [serialization.take(baseline, np.array(part)) for part in ([0, 1], [2, 3, 4])]
    assert serialization.to_bytes(serialization.join(halves), 1) == serialization.to_bytes(baseline, 1)
    states = [run_state.start_state(half) for half in halves]
    parts = [slice(0, 2), slice(2, 5)]
    for half, state, part in zip(halves, states, parts, strict=True):
        KINDS["scores"].run(half, state, cut(BATCHES["scores"], slice(HISTORY, WINDOWS), part))
    joined = run_state.detector_status(baseline, serialization.join(states))
    whole = run_state.start_state(baseline)
    KINDS["scores"].run(baseline, whole, cut(BATCHES["scores"], slice(HISTORY, WINDOWS)))
    together = run_state.detector_status(baseline, whole)
    assert joined.onset.tolist() == together.onset.tolist()
    assert joined.evidence == pytest.approx(together.evidence)


def test_other_bytes_are_refused() -> None:
    kept = serialization.to_bytes(BASELINES["rates"], 1)
    with pytest.raises(ValueError, match="stored is Baseline/1, this release reads Baseline/2"):
        serialization.from_bytes(Baseline, kept, 2)
    with pytest.raises(ValueError, match="this release reads State/1"):
        serialization.from_bytes(State, kept, 1)
    with pytest.raises(ValueError, match="stored is no deflated State"):
        serialization.from_bytes(State, b"PK" + kept, 1)


def test_baselines_of_windows_of_different_sizes_do_not_join() -> None:
    one = BASELINES["rates"]
    batch = BATCHES["rates"]
    hourly = type(batch)(batch.start[:48] // 300 * 3600, batch.n[:, :48] * 12, batch.hits[:, :48])
    with pytest.raises(ValueError, match="different size_s"):
        serialization.join([one, KINDS["rates"].fit(hourly)])
