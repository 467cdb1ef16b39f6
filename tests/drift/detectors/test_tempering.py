"""Bursts that history is full of are no evidence: at whatever minute they come, and however clear each one is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from drift.detectors import watching
from drift.detectors.series import Categories, Floats, Positives, Rates, cut
from drift.detectors.tempering import LENGTHS, tempered
from tests.drift.detectors.worlds import DAY, KINDS

HISTORY, WATCHED, SERIES = 14 * DAY, 6 * DAY, 4
A_DAY, CALM, BURST = 48, -1.0, 20.0


def with_bursts(days: list[int]) -> Floats:
    """Half hours of 14 days that say a little less, and on these days one that says a lot."""
    said = np.full((1, 1, 14 * A_DAY), CALM)
    said[0, 0, [A_DAY * day + 12 + day for day in days]] = BURST
    return said


def divisor(said: Floats) -> float:
    return float(tempered(np.ones((1, 1, 2, 1)), lambda direction, _: said * (1 - direction), A_DAY)[0, 0, 0, 0])


def test_a_burst_of_every_day_averages_at_most_one_over_history() -> None:
    """For single windows, of which 14 are bursts, and for stretches, of which more hold one."""
    said = with_bursts(list(range(14)))
    found = divisor(said)
    alone = optimize.brentq(
        lambda e: 14 * np.exp(BURST * e) + (14 * A_DAY - 14) * np.exp(CALM * e) - 14 * A_DAY, 0.05, 1
    )
    assert found == pytest.approx(1 / alone)
    averages = []
    for length in LENGTHS:
        sums = np.lib.stride_tricks.sliding_window_view(said.reshape(14, A_DAY), length, axis=1).sum(axis=2)
        averages.append(np.exp(sums / found).mean())
    assert max(averages) == pytest.approx(1, abs=1e-6)


def test_what_one_day_did_is_an_incident() -> None:
    """Of many days: of three it may be how the series is."""
    assert divisor(with_bursts([])) == divisor(with_bursts([3])) == 1
    assert divisor(with_bursts([3, 9])) > 2
    assert divisor(with_bursts([2])[:, :, : 3 * A_DAY]) > 2


def bursting(kind: str, changed_at: int) -> Any:
    """About once a day, at some minute or other, a window in which nearly every record is as few are."""
    batch = KINDS[kind].made(HISTORY + WATCHED, SERIES, 3, changed_at)
    at = np.random.default_rng(4).random((SERIES, HISTORY + WATCHED)) < 1 / DAY
    match batch:
        case Rates():
            batch.hits[at] = 0.4 * batch.n[at]
        case Positives():
            batch.above[at] = batch.n[at][:, None]
        case Categories():
            batch.counts[at] = batch.counts[at][:, [2, 1, 0, 3]]
    return batch


@pytest.mark.parametrize("kind", ["rates", "positives", "categories"])
def test_bursts_at_any_minute_are_no_change_and_a_change_among_them_is(kind: str) -> None:
    changed_at = HISTORY + 5 * DAY
    batch = bursting(kind, changed_at)
    baseline = KINDS[kind].fit(cut(batch, slice(0, HISTORY)))
    alarm = KINDS[kind].run(baseline, watching.start(baseline), cut(batch, slice(HISTORY, None))).alarm
    assert not alarm[:, : 5 * DAY].any()
    assert alarm[:, 5 * DAY :].any(axis=1).all()
    hardy = replace(baseline, divisor=np.ones(baseline.divisor.shape))
    alarm = KINDS[kind].run(hardy, watching.start(hardy), cut(batch, slice(HISTORY, None))).alarm
    assert alarm[:, : 5 * DAY].any(axis=1).mean() > 0.5
