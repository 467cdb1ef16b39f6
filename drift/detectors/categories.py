"""Detect changes in a mix of labels: each label with more than 0.2 % of the records, and all others together.

Channels are the labels in the order of the counts; the last one is the rest, which includes new labels.
"""

from dataclasses import replace

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Numbers
from ragtide.drift.detectors import baseline as fits
from ragtide.drift.detectors import proportions
from ragtide.drift.detectors.arrays import Categories, RunResult
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.run_state import State

MARGIN = 0.2  # of the odds
MIN_SHARE = 0.002


def fit(history: Categories, *, seasonal: bool = True) -> Baseline:
    """Fit the baseline of known-good windows, or of any reference (`seasonal=False`: one level)."""
    return fits.fit_in_chunks(history, history.counts.shape[2] + 1, lambda some: _fit(some, seasonal))


def run(baseline: Baseline, state: State, windows: Categories) -> RunResult:
    """Run over windows; `state` advances to their end. Raises as `run_state.run`."""
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
    """Convert counts to records n [S, T] and hits [S, C, T]; labels that are not watched go to the last channel."""
    n, of_label = _zero_invalid(counts)
    return n, _with_rest(of_label, watched)


def _with_rest(of_label: Floats, watched: Flags) -> Floats:
    rest = (of_label * ~watched[:, :, None]).sum(axis=1)
    return np.concatenate([of_label, rest[:, None]], axis=1)


def _zero_invalid(counts: Numbers) -> tuple[Floats, Floats]:
    """Convert counts to records n [S, T] and counts [S, C, T]; a window with an invalid count becomes empty."""
    of_label = np.array(counts.transpose(0, 2, 1), np.float64)
    bad: Flags = np.asarray((~np.isfinite(of_label) | (of_label < 0)).any(axis=1))
    of_label[np.broadcast_to(bad[:, None], of_label.shape)] = 0.0
    return proportions.zero_invalid(of_label.sum(axis=1), of_label)
