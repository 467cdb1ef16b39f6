"""Bursts that history is full of are no evidence: at whatever minute they come, and however clear each one is."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ragtide.drift.array_types import Floats
from ragtide.drift.detectors import run_state
from ragtide.drift.detectors.arrays import Categories, HeavyTailed, Rates, Scores, cut
from ragtide.drift.detectors.tempering import temper
from tests.drift.detectors.worlds import DAY, KINDS

HISTORY, WATCHED, SERIES = 14 * DAY, 6 * DAY, 4
A_DAY, CALM, BURST = 48, -1.0, 20.0


def with_bursts(days: list[int]) -> Floats:
    """Half hours of 14 days that say a little less, and on these days one that says a lot."""
    said = np.full((1, 1, 14 * A_DAY), CALM)
    said[0, 0, [A_DAY * day + 12 + day for day in days]] = BURST
    return said


def divisor(said: Floats, opposite: Floats | None = None, left_out: list[int] | None = None) -> float:
    """Of the first direction, which said that; hours of these days are left out where it said a lot."""
    out = np.isin(np.arange(said.shape[2]) // A_DAY, left_out or []) & (said > 0)
    ways = (said, np.zeros(said.shape) if opposite is None else opposite)
    return float(temper(np.ones((1, 1, 2, 1)), lambda _, way, __: ways[way][0], out, A_DAY)[0, 0, 0, 0])


def allowed(rank: int) -> float:
    return 0.6 * math.log(14 * A_DAY / rank)


def test_bursts_of_every_day_climb_as_far_as_the_fourteenth_highest_may() -> None:
    """One is forgiven; of the 13 others the last one has least room."""
    assert divisor(with_bursts(list(range(14)))) == pytest.approx(BURST / allowed(13))
    assert divisor(with_bursts([3, 9])) == pytest.approx(BURST / allowed(1))
    assert divisor(with_bursts([2])[:, :, : 3 * A_DAY]) > 2  # of three days it may be how the series is
    assert divisor(with_bursts([])) == divisor(with_bursts([3])) == 1


def test_what_climbs_for_hours_is_counted_unless_it_was_left_out() -> None:
    """Half a day in which each half hour says a little: an incident where its hours were left out."""
    said = with_bursts([])
    said[0, 0, 5 * A_DAY + 10 : 5 * A_DAY + 34] = 1.0
    assert divisor(said) == pytest.approx(24 / allowed(1))
    assert divisor(said, left_out=[5]) == 1


def test_a_day_that_went_both_ways_was_a_storm() -> None:
    """As far as the way that it went less far."""
    said, opposite = with_bursts([]), with_bursts([])
    said[0, 0, 5 * A_DAY + 10 : 5 * A_DAY + 22] = 2.0
    opposite[0, 0, 5 * A_DAY + 30 : 5 * A_DAY + 42] = 1.0
    assert divisor(said, opposite, left_out=[5]) == pytest.approx(12 / allowed(1))


def test_bursts_that_were_left_out_count_but_for_one() -> None:
    assert divisor(with_bursts([3, 9]), left_out=[3, 9]) == pytest.approx(BURST / allowed(1))
    assert divisor(with_bursts([3]), left_out=[3]) == 1


def bursting(kind: str, changed_at: int) -> Any:
    """About once a day, at some minute or other, a quarter of an hour in which nearly every record is as few are."""
    batch = KINDS[kind].made(HISTORY + WATCHED, SERIES, 3, changed_at)
    at = np.random.default_rng(4).random((SERIES, HISTORY + WATCHED)) < 1 / DAY
    at[:, 2:] |= at[:, 1:-1] | at[:, :-2]
    match batch:
        case Rates():
            batch.hits[at] = 0.4 * batch.n[at]
        case HeavyTailed():
            batch.above[at] = batch.n[at][:, None]
        case Scores():
            low = 0.6 * batch.n[at]
            batch.squares[at] += low**2 / batch.n[at] - batch.total[at] ** 2 / batch.n[at]
            batch.total[at] = low
        case Categories():
            batch.counts[at] = batch.counts[at][:, [2, 1, 0, 3]]
    return batch


@pytest.mark.parametrize("kind", KINDS)
def test_bursts_at_any_minute_are_no_change_and_a_change_among_them_is(kind: str) -> None:
    changed_at = HISTORY + 5 * DAY
    batch = bursting(kind, changed_at)
    baseline = KINDS[kind].fit(cut(batch, slice(0, HISTORY)))
    alarm = KINDS[kind].run(baseline, run_state.start_state(baseline), cut(batch, slice(HISTORY, None))).alarm
    assert not alarm[:, : 5 * DAY].any()
    assert alarm[:, 5 * DAY :].any(axis=1).all()
    hardy = replace(baseline, inflation=np.ones(baseline.inflation.shape))
    alarm = KINDS[kind].run(hardy, run_state.start_state(hardy), cut(batch, slice(HISTORY, None))).alarm
    assert alarm[:, : 5 * DAY].any(axis=1).mean() > 0.5
