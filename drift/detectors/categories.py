"""Changes in a mix of labels: each with more than 0.2 % of the records is watched, all others together are one more.

Channels are the labels in the order of the counts, and last the rest, to which labels belong that nobody saw before.
"""

from dataclasses import replace

import numpy as np

from ragtide.drift.detectors import baseline as fits
from ragtide.drift.detectors import proportions
from ragtide.drift.detectors.arrays import Categories, Flags, Floats, Numbers, RunResult
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.run_state import State

MARGIN = 0.2  # of the odds
MIN_SHARE = 0.002


def fit(history: Categories, *, seasonal: bool = True) -> Baseline:
    """The baseline of known-good windows, or of any reference (`seasonal=False`: one level)."""
    return fits.fit_in_chunks(history, history.counts.shape[2] + 1, lambda some: _fit(some, seasonal))


def run(baseline: Baseline, state: State, windows: Categories) -> RunResult:
    """Alarms after each of the windows; `state` goes on to their end. Raises as `run_state.run`."""
    n, hits = to_channels(windows.counts, baseline.active[:, :-1])
    return proportions.run_channels(baseline, state, windows.start, n, hits)


def _fit(history: Categories, seasonal: bool) -> Baseline:
    n, counts = _zero_invalid(history.counts)
    watched = counts.sum(axis=2) > MIN_SHARE * n.sum(axis=1)[:, None]
    hits = _with_rest(counts, watched)
    min_shares = np.zeros(hits.shape[1])
    min_shares[-1] = MIN_SHARE
    found = proportions.fit_channels(history.start, n, hits, seasonal, MARGIN, min_shares)
    every = np.concatenate([watched, np.ones((len(n), 1), bool)], axis=1)
    return replace(found, active=found.active & every)


def to_channels(counts: Numbers, watched: Flags) -> tuple[Floats, Floats]:
    """Records n [S, T] and hits [S, C, T] of counts, the labels that are not watched in the last channel."""
    n, of_label = _zero_invalid(counts)
    return n, _with_rest(of_label, watched)


def _with_rest(of_label: Floats, watched: Flags) -> Floats:
    rest = (of_label * ~watched[:, :, None]).sum(axis=1)
    return np.concatenate([of_label, rest[:, None]], axis=1)


def _zero_invalid(counts: Numbers) -> tuple[Floats, Floats]:
    """Records n [S, T] and counts [S, C, T]; a window with an impossible count is empty."""
    of_label = np.array(counts.transpose(0, 2, 1), np.float64)
    bad: Flags = np.asarray((~np.isfinite(of_label) | (of_label < 0)).any(axis=1))
    of_label[np.broadcast_to(bad[:, None], of_label.shape)] = 0.0
    return proportions.zero_invalid(of_label.sum(axis=1), of_label)
