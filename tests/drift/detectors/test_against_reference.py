"""Alarms and evidence, window by window, against the formulae in plain Python; and where they were in a golden run."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ragtide.drift.detectors import run_state
from ragtide.drift.detectors.arrays import Rates, Scores, cut
from tests.drift.detectors import reference
from tests.drift.detectors.reference import Told
from tests.drift.detectors.worlds import DAY, KINDS

HISTORY = 3 * DAY
CHANGED = HISTORY + 100
BACK = CHANGED + 60  # then all is as before
WINDOWS = HISTORY + 260


def there_and_back(kind: str) -> Any:
    """Two series that change, and change back."""
    changed, unchanged = (KINDS[kind].made(WINDOWS, 2, 5, at) for at in (CHANGED, None))
    first, last = cut(changed, slice(0, BACK)), cut(unchanged, slice(BACK, None))
    names = [name for name in ("n", "total", "squares", "hits", "above", "counts") if hasattr(first, name)]
    joined = {name: np.concatenate([getattr(part, name) for part in (first, last)], axis=1) for name in names}
    return type(changed)(start=changed.start, **joined)


def score_windows(batch: Scores, series: int) -> list[Any]:
    columns = (batch.n[series], batch.total[series], batch.squares[series])
    return list(zip(batch.start.tolist(), *(column.tolist() for column in columns), strict=True))


def rate_windows(batch: Rates, series: int) -> list[Any]:
    return list(zip(batch.start.tolist(), batch.n[series].tolist(), batch.hits[series][:, None].tolist(), strict=True))


def positive_windows(batch: Any, series: int) -> list[Any]:
    return list(zip(batch.start.tolist(), batch.n[series].tolist(), batch.above[series].tolist(), strict=True))


def category_windows(batch: Any, series: int) -> list[Any]:
    counts = batch.counts[series]
    hits = np.concatenate([counts, counts[:, 3:]], axis=1)  # the last label is rare: it is the rest
    return list(zip(batch.start.tolist(), counts.sum(axis=1).tolist(), hits.tolist(), strict=True))


TOLD: dict[str, tuple[Callable[..., Iterator[Told]], Callable[..., list[Any]]]] = {
    "scores": (reference.scores, score_windows),
    "rates": (reference.shares, rate_windows),
    "positives": (reference.shares, positive_windows),
    "categories": (reference.shares, category_windows),
}
# Windows from the change to the first in alarm, and from the change back to the last; of either series.
GOLDEN = {
    "scores": [(5, 19), (4, 25)],
    "rates": [(34, 82), (14, 70)],
    "positives": [(7, 18), (8, 37)],
    "categories": [(3, 19), (5, 24)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_window_is_as_the_formulae_say(kind: str) -> None:
    batch = there_and_back(kind)
    baseline = KINDS[kind].fit(cut(batch, slice(0, HISTORY)))
    assert baseline.warm_up_reasons() == ["", ""]
    state = run_state.start_state(baseline)
    told, windows = TOLD[kind]
    plain = [list(told(baseline, series, windows(cut(batch, slice(HISTORY, None)), series))) for series in (0, 1)]
    alarms = 0
    for window in range(HISTORY, WINDOWS):
        watched = KINDS[kind].run(baseline, state, cut(batch, slice(window, window + 1)))
        reading = run_state.detector_status(baseline, state)
        for series in (0, 1):
            expected = plain[series][window - HISTORY]
            alarms += expected.alarm
            assert watched.alarm[series, 0] == reading.alarm[series] == expected.alarm
            if expected.log_e is not None and expected.log_e > -50:
                assert watched.evidence[series, 0] == pytest.approx(expected.log_e, abs=1e-6)
            assert reading.evidence[series] == watched.evidence[series, 0]
            assert reading.channel[series] == expected.channel
            assert reading.direction[series] == expected.direction
            assert reading.onset[series] == expected.onset
            assert reading.shift[series] == pytest.approx(expected.shift, rel=1e-4, abs=1e-9)
            assert math.isclose(
                reading.observed[series] - reading.expected[series], reading.shift[series], abs_tol=1e-9
            )
    assert alarms
    first = [next(i for i, one in enumerate(rows) if one.alarm) + HISTORY - CHANGED for rows in plain]
    last = [max(i for i, one in enumerate(rows) if one.alarm) + HISTORY - BACK for rows in plain]
    assert list(zip(first, last, strict=True)) == GOLDEN[kind]
