"""Input that is empty, constant, impossible or no number gives no alarm and no error, nor a warning."""

from typing import Any

import numpy as np
import pytest

from ragtide.drift.detectors import run_state
from ragtide.drift.detectors.arrays import Categories, HeavyTailed, Rates, Scores, cut
from tests.drift.detectors.worlds import DAY, KINDS, starts

HISTORY, WINDOWS = 2 * DAY, 3 * DAY
N = np.full((1, WINDOWS), 10.0)
NOTHING = np.zeros((1, WINDOWS))
NOT_A_NUMBER = np.full((1, WINDOWS), np.nan)


def of_scores(n: Any, value: Any) -> Scores:
    return Scores(starts(WINDOWS), n, n * value, n * value**2)


def both(hits: Any) -> Any:
    return np.stack([hits, hits], axis=2)


ODD: dict[str, dict[str, Any]] = {
    "scores": {
        "empty": of_scores(NOTHING, 0.0),
        "always 0": of_scores(N, 0.0),
        "always 1": of_scores(N, 1.0),
        "no number": Scores(starts(WINDOWS), N, NOT_A_NUMBER, NOT_A_NUMBER),
        "infinite": Scores(starts(WINDOWS), N, N * np.inf, N * np.inf),
        "huge": Scores(starts(WINDOWS), N, N * 1e300, N * 1e300),
        "impossible squares": Scores(starts(WINDOWS), N, N * 0.5, -N),
        "fewer than none": of_scores(-N, 0.5),
        "one record": of_scores(N / 10, 0.5),
        "one window": of_scores(np.eye(1, WINDOWS) * 100, 0.5),
        "one window a day": of_scores(N * (np.arange(WINDOWS) % DAY == 7), 0.5),
        "0 and 1 in turn": of_scores(N, np.arange(WINDOWS) % 2 * 1.0),
    },
    "rates": {
        "empty": Rates(starts(WINDOWS), NOTHING, NOTHING),
        "never": Rates(starts(WINDOWS), N, NOTHING),
        "always": Rates(starts(WINDOWS), N, N),
        "no number": Rates(starts(WINDOWS), N, NOT_A_NUMBER),
        "more hits than records": Rates(starts(WINDOWS), N, N + 1),
        "one record": Rates(starts(WINDOWS), N / 10, N / 10),
        "all or none in turn": Rates(starts(WINDOWS), N, N * (np.arange(WINDOWS) % 2)),
    },
    "positives": {
        "empty": HeavyTailed(starts(WINDOWS), NOTHING, both(NOTHING)),
        "constant": HeavyTailed(starts(WINDOWS), N, both(NOTHING)),
        "no number": HeavyTailed(starts(WINDOWS), NOT_A_NUMBER, both(N)),
    },
    "categories": {
        "empty": Categories(starts(WINDOWS), both(NOTHING)),
        "one label": Categories(starts(WINDOWS), np.stack([N, NOTHING, NOTHING], axis=2)),
        "no number": Categories(starts(WINDOWS), both(NOT_A_NUMBER)),
        "no labels": Categories(starts(WINDOWS), np.zeros((1, WINDOWS, 0))),
    },
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, odd in ODD.items() for name in odd])
def test_odd_series_are_not_alarming(kind: str, name: str) -> None:
    batch = ODD[kind][name]
    baseline = KINDS[kind].fit(cut(batch, slice(0, HISTORY)))
    state = run_state.start_state(baseline)
    with np.errstate(all="raise", under="ignore"):
        watched = KINDS[kind].run(baseline, state, cut(batch, slice(HISTORY, WINDOWS)))
    assert not watched.alarm.any()
    assert np.isfinite(watched.evidence).all()


@pytest.mark.parametrize("kind", KINDS)
def test_days_without_a_record_change_nothing(kind: str) -> None:
    batch = KINDS[kind].made(5 * DAY, 2, 3)
    for array in (getattr(batch, name) for name in type(batch).__dataclass_fields__ if name != "start"):
        array[:, 3 * DAY + 10 : 4 * DAY + 200] = 0
    baseline = KINDS[kind].fit(cut(batch, slice(0, 3 * DAY)))
    state = run_state.start_state(baseline)
    run = KINDS[kind].run
    run(baseline, state, cut(batch, slice(3 * DAY, 3 * DAY + 10)))
    before = run_state.detector_status(baseline, state).evidence
    run(baseline, state, cut(batch, slice(3 * DAY + 10, 4 * DAY + 200)))
    assert run_state.detector_status(baseline, state).evidence.tolist() == before.tolist()
    assert not run(baseline, state, cut(batch, slice(4 * DAY + 200, 5 * DAY))).alarm.any()


EXTREMES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 0.3, 1.0, -1.0, 40.0, 1e9, -1e9, 1e12, 1e18, 1e300, -1e300]


@pytest.mark.parametrize("kind", KINDS)
def test_anything_may_come(kind: str) -> None:
    """A hundred series with an hour of extremes in the history and another one later, the same windows all over."""
    batch = KINDS[kind].made(DAY + 12, 100, 4)
    rng = np.random.default_rng(5)
    names = [name for name in type(batch).__dataclass_fields__ if name != "start"]
    arrays = {name: getattr(batch, name) * 1.0 for name in names}
    for array in arrays.values():
        for first in (50, DAY):
            hour = array[:, first : first + 12]
            hour[:] = np.where(rng.random(hour.shape) < 0.7, rng.choice(EXTREMES, hour.shape), hour)
    odd = type(batch)(batch.start, **arrays)
    with np.errstate(all="raise", under="ignore"):
        baseline = KINDS[kind].fit(cut(odd, slice(0, DAY)))
        watched = KINDS[kind].run(baseline, run_state.start_state(baseline), cut(odd, slice(DAY, None)))
    assert np.isfinite(watched.evidence).all()
    assert np.isfinite(baseline.level).all()
