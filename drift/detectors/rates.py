"""Changes in a rate, the share of records that say yes (an error, an empty answer), beyond 10 % of its odds."""

import numpy as np

from drift.detectors import baseline as fits
from drift.detectors import shares, stored
from drift.detectors.baseline import Baseline
from drift.detectors.series import Rates, Watched, cut, size_s
from drift.detectors.watching import State


def fit(history: Rates, *, seasonal: bool = True) -> Baseline:
    """The baseline of known-good windows, or of any reference (`seasonal=False`: one level)."""
    every = slice(None)
    return stored.join(
        [_fit(cut(history, every, chunk), seasonal) for chunk in fits.chunks(len(history.n), len(history.start))]
    )


def run(baseline: Baseline, state: State, windows: Rates) -> Watched:
    """Alarms after each of the windows; `state` goes on to their end. Raises as `watching.advance`."""
    return shares.run(baseline, state, windows.start, windows.n, windows.hits[:, None])


def _fit(history: Rates, seasonal: bool) -> Baseline:
    n, hits = shares.valid(history.n, history.hits[:, None])
    least = np.zeros((len(n), 1))
    return shares.fit(history.start, n, hits, size_s(history.start), seasonal, shares.MARGIN, least)
