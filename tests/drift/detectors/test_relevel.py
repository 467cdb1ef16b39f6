"""Baselines at another level: hours of the day of history, the level of half a dozen hours of now."""

import numpy as np
import pytest

from ragtide.drift.detectors import run_state
from ragtide.drift.detectors.arrays import cut
from ragtide.drift.detectors.baseline import MIN_UPDATES, WarmUp
from ragtide.drift.detectors.dispatch import fit_baseline, record_counts, relevel_baseline
from tests.drift.detectors.worlds import DAY, KINDS, scored

CHANGED = 8 * DAY + DAY // 2
SIX_HOURS = slice(CHANGED, CHANGED + DAY // 4)
LATER = slice(CHANGED + DAY // 4, CHANGED + 4 * DAY)
SERIES = 4


@pytest.mark.parametrize("kind", KINDS)
def test_what_changed_is_usual_and_what_goes_back_is_a_change(kind: str) -> None:
    """Half a day after midnight the season is on its way down: one level for all hours would alarm in the morning."""
    world = KINDS[kind].made(CHANGED + 4 * DAY, SERIES, 3, CHANGED)
    history, now = cut(world, slice(0, CHANGED)), cut(world, SIX_HOURS)
    old = KINDS[kind].fit(history)
    moved, enough = relevel_baseline(old, now, record_counts(history).sum(axis=1))
    assert enough.all()
    assert (moved.warming == WarmUp.READY).all()
    assert not KINDS[kind].run(moved, run_state.start_state(moved), cut(world, LATER)).alarm.any()
    assert KINDS[kind].run(old, run_state.start_state(old), cut(world, LATER)).alarm.any(axis=1).all()
    unchanged = cut(KINDS[kind].made(CHANGED + 4 * DAY, SERIES, 4), LATER)
    assert KINDS[kind].run(moved, run_state.start_state(moved), unchanged).alarm.any(axis=1).all()


def test_a_score_keeps_its_hours_and_is_less_sure_of_its_level() -> None:
    """It fell by 0.1: each hour's level does. The error of the level is that of six hours after 8.5 days."""
    world = scored(CHANGED + DAY, SERIES, 5, CHANGED)
    history, now = cut(world, slice(0, CHANGED)), cut(world, SIX_HOURS)
    old = fit_baseline(history)
    moved, _ = relevel_baseline(old, now, history.n.sum(axis=1))
    assert moved.level[:, 0] - old.level[:, 0] == pytest.approx(-0.1, abs=0.015)
    assert np.ptp(moved.level[:, 0] - old.level[:, 0], axis=1).max() < 1e-6
    assert moved.level[:, 1] == pytest.approx(old.level[:, 1], rel=0.15)
    times = np.sqrt(1 + history.n.sum(axis=1) / now.n.sum(axis=1))
    assert moved.margin[:, 0, 0] - 0.01 == pytest.approx((old.margin[:, 0, 0] - 0.01) * times)


def test_a_level_of_few_records_is_none() -> None:
    world = scored(CHANGED + DAY, SERIES, 6, CHANGED)
    history = cut(world, slice(0, CHANGED))
    old, known = fit_baseline(history), history.n.sum(axis=1)
    for windows, told in ((0, False), (MIN_UPDATES // 2, False), (2 * MIN_UPDATES, True)):
        now = cut(world, slice(CHANGED, CHANGED + windows))
        assert (relevel_baseline(old, now, known)[1] == told).all()
