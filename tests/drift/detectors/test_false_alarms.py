"""The stated run length: how many series alarm by a time though nothing changed; Ville's inequality bounds it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import signal

from ragtide.drift.detectors import noise, run_state, scores
from ragtide.drift.detectors.arrays import cut
from ragtide.drift.detectors.baseline import divisors, log_threshold
from ragtide.drift.detectors.noise import Noise
from ragtide.drift.stats.multiple_testing import e_bh
from tests.drift.detectors.worlds import DAY, KINDS, scored

SERIES, WINDOWS = 300, 200


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_length_of_a_thousand_windows_is_kept(kind: str) -> None:
    """By window T at most T/A of the series alarm: of 300 by window 200 with A = 1,000, at most 60 are expected."""
    batch = KINDS[kind].made(3 * DAY + WINDOWS, SERIES, 11)
    baseline = replace(KINDS[kind].fit(cut(batch, slice(0, 3 * DAY))), threshold=np.log(1000))
    watched = KINDS[kind].run(baseline, run_state.start_state(baseline), cut(batch, slice(3 * DAY, None)))
    alarmed = watched.alarm.any(axis=1).mean()
    assert alarmed <= WINDOWS / 1000
    assert watched.evidence.max() > np.log(3)  # it does accumulate: what does not move cannot alarm


def test_a_fleet_by_hand() -> None:
    """Five series, A of a day = 288: one needs 1,440, two need 720 each, three 480 each."""
    assert log_threshold(300, 1.0) == pytest.approx(np.log(288))
    for values, believed in (
        ([1400, 0.1, 0.1, 0.1, 0.1], []),
        ([1500, 0.1, 0.1, 0.1, 700], [0]),
        ([725, 0.1, 730, 0.1, 300], [0, 2]),
        ([490, 500, 485, 0.1, 0.1], [0, 1, 2]),
    ):
        found = e_bh(np.log(values), log_threshold(300, 1.0))
        assert np.flatnonzero(found).tolist() == believed


def test_a_longer_run_length_believes_less() -> None:
    log_e = np.log(np.random.default_rng(1).pareto(0.5, 200) * 1e4)
    counts = [e_bh(log_e, log_threshold(300, 1 / days)).sum() for days in (1, 7, 70)]
    assert counts[0] > counts[1] > counts[2]


def test_a_level_that_wanders_keeps_the_run_length() -> None:
    """AR(1) of 0.95 with a deviation of 0.03: three times the margin, for hours on end."""
    windows = 4 * DAY + WINDOWS
    batch = scored(windows, SERIES, 12)
    steps = np.random.default_rng(13).normal(0, 0.03 * np.sqrt(1 - 0.95**2), (SERIES, windows + 500))
    wander = signal.lfilter([1], [1, -0.95], steps, axis=1)[:, 500:]
    moved = batch.squares + 2 * wander * batch.total + batch.n * wander**2
    batch = replace(batch, total=batch.total + batch.n * wander, squares=moved)
    baseline = replace(scores.fit(cut(batch, slice(0, 4 * DAY))), threshold=np.log(1000))
    careless = replace(baseline, inflation=np.ones(baseline.inflation.shape))
    found = [
        scores.run(one, run_state.start_state(one), cut(batch, slice(4 * DAY, None))).alarm.any(axis=1).mean()
        for one in (baseline, careless)
    ]
    assert found[0] <= WINDOWS / 1000 < found[1]  # it is the inflation that keeps it


def test_what_alternatives_reckon_with() -> None:
    """F >= 4 f(l) L l / (L + l)^2 for every l, with L = 10 F; no more than one of them asks for, or f(L); by hand."""
    lengths = noise.HORIZONS
    for inflation in (np.ones(8), np.array([1.0, 2.5, 4.0, 6.0, 9.0, 10.0, 11.0, 12.0])):
        one = np.ones((1, 1))
        found = Noise(one, one, one, inflation[None, None], np.ones((1, 1), np.int64), one, one)
        divisor = divisors(found, np.full((1, 1, 2, 1), 10.0))[0, 0, 0, 0]
        needed = min(10 * divisor, 288.0)
        asked = 4 * inflation * needed * lengths / (needed + lengths) ** 2
        own = np.interp(np.log(needed), np.log(lengths), inflation)
        assert divisor == pytest.approx(max(asked.max(), own), rel=0.02)
