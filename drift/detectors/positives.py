"""Changes in a heavy-tailed metric (latency, cost): in the shares of records above its history's median and p95.

A mean of such a metric is one request's whim. Channel 0 counts what lies above the median, channel 1 above the p95;
`Baseline.bins` keeps the levels' bins, `series.level_values` says what they are in the metric's unit.
"""

from dataclasses import replace

import numpy as np

from drift.detectors import baseline as fits
from drift.detectors import shares, stored
from drift.detectors.baseline import Baseline
from drift.detectors.series import Integers, Positives, Watched, cut, size_s
from drift.detectors.watching import State

CHANNELS = ("median", "p95")


def fit(history: Positives, levels: Integers | None = None, *, seasonal: bool = True) -> Baseline:
    """The baseline of known-good windows, or of any reference; `levels` [S, 2]: the bins that `above` lies above."""
    every = slice(None)
    parts = [
        _fit(cut(history, every, chunk), seasonal)
        for chunk in fits.chunks(len(history.n), len(history.start) * len(CHANNELS))
    ]
    found = stored.join(parts)
    return found if levels is None else replace(found, bins=levels.astype(np.int32))


def run(baseline: Baseline, state: State, windows: Positives) -> Watched:
    """Alarms after each of the windows; `state` goes on to their end. Raises as `watching.advance`."""
    return shares.run(baseline, state, windows.start, windows.n, windows.above.transpose(0, 2, 1))


def _fit(history: Positives, seasonal: bool) -> Baseline:
    n, above = shares.valid(history.n, history.above.transpose(0, 2, 1))
    least = np.zeros((len(n), len(CHANNELS)))
    return shares.fit(history.start, n, above, size_s(history.start), seasonal, shares.MARGIN, least)
