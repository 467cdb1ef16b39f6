"""The sequential statistic: e-Shiryaev-Roberts with restart for a mixture of alternatives.

Per channel, direction and alternative: log M <- log(1 + M) + increment. The increment is a log likelihood ratio or
less, so E exp(increment) <= 1 while nothing changed. M of a series is the mean over all of them. It is an e-detector:
the expected number of windows to M >= A is at least A (Shin, Ramdas and Rinaldo, "E-detectors", 2022).
Shapes: S series, C channels, 2 directions (up, down), K alternatives.
"""

from dataclasses import dataclass

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Numbers

NO_EVIDENCE = -700.0  # log M at the start; its exp is 0 beside 1
SIGNS = np.array([1.0, -1.0])  # of the two directions
MAX_INCREMENT = 10.0  # of an update: one window alone hardly ever raises an alarm


@dataclass(frozen=True, slots=True)
class Evidence:
    """log M [S, C, 2, K], the window of its onset, and sums since then: records, residuals, expectations."""

    log_m: Floats
    onset: Numbers
    records: Numbers
    residual: Numbers
    expected: Numbers

    @classmethod
    def none(cls, series: int, channels: int, alternatives: int) -> "Evidence":
        """Return the evidence before the first update."""
        shape = (series, channels, len(SIGNS), alternatives)
        log_m = np.full(shape, NO_EVIDENCE)
        return cls(log_m, np.zeros(shape, np.int32), *(np.zeros(shape, np.float32) for _ in range(3)))


@dataclass(frozen=True, slots=True)
class Update:
    """An update of channels [S, C]: whether there is one, its first window, and its sums over records.

    `increments` [S, C, 2, K] of log M.
    """

    present: Flags
    first: Numbers
    records: Floats
    residual: Floats
    expected: Floats
    increments: Floats


def add(evidence: Evidence, update: Update) -> None:
    """Add an update, in place. If M was at most 1 before, the onset is the update's first window."""
    present = update.present[:, :, None, None]
    anew = present & (evidence.log_m <= 0)
    np.copyto(evidence.onset, update.first[:, :, None, None], where=anew, casting="same_kind")
    for total, more in (
        (evidence.records, update.records),
        (evidence.residual, update.residual),
        (evidence.expected, update.expected),
    ):
        total[anew] = 0.0
        total += np.where(present, more[:, :, None, None], 0.0).astype(np.float32)
    np.copyto(
        evidence.log_m, np.logaddexp(0.0, evidence.log_m) + np.minimum(update.increments, MAX_INCREMENT), where=present
    )


def log_e(evidence: Evidence, active: Flags) -> Floats:
    """Return the log of the mean M of each series [S] over its active channels [S, C]."""
    flat = np.where(active[:, :, None, None], evidence.log_m, NO_EVIDENCE).reshape(len(active), -1)
    top = flat.max(axis=1)
    each = len(SIGNS) * evidence.log_m.shape[3] * np.maximum(active.sum(axis=1), 1)
    found: Floats = top + np.log(np.exp(np.maximum(flat - top[:, None], NO_EVIDENCE)).sum(axis=1)) - np.log(each)
    return found


def poisson_increments(x: Floats, variance: Floats, third: Floats, shift: Floats) -> Floats:
    """Return log likelihood ratios of a mean that rose by `shift` against one that did not; arguments broadcast.

    `x`: distance of the mean from the margin, with `variance` and third central moment `third`, modelled as a
    compound Poisson variable of jumps c = third / variance. With u = c shift / variance the ratio is
    log(1 + u) x / c - variance (u - log(1 + u)) / c^2. For c -> 0 it is that of Gaussian errors,
    shift x / variance - shift^2 / (2 variance), which would mistake the skewed errors of few records for a change.
    """
    u = third / variance / variance * shift
    small = u < 1e-4
    safe = np.where(small, 1.0, u)
    log = np.log1p(safe)
    slope = np.where(small, 1 - u / 2, log / safe)
    curve = np.where(small, 0.5 - u / 3, (safe - log) / safe**2)
    return shift / variance * (slope * x - curve * shift)


def bernoulli_increments(n: Floats, hits: Floats, odds: Floats, ratios: Floats) -> Floats:
    """Return exact log likelihood ratios of hits among n, for `odds` times `ratios` against `odds`; they broadcast."""
    less = np.log1p(odds * ratios) - np.log1p(odds)
    found: Floats = hits * np.log(ratios) - n * less
    return found
