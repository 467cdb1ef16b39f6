"""AUROC and F1 of a score against people's verdicts, with intervals that know that answers share sources."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
RESAMPLES = 400


class Interval(NamedTuple):
    """A figure with its 95 % interval; NaN where it is not defined."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def auroc(risk: Floats, bad: Flags) -> float:
    """Return the probability that a bad answer has a higher risk than a good one, ties half. NaN without both kinds."""
    positives = int(bad.sum())
    negatives = len(bad) - positives
    if not positives or not negatives:
        return float("nan")
    ranks = rankdata(risk)
    return float((ranks[bad].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def f1(flagged: Flags, bad: Flags) -> float:
    """Return the harmonic mean of precision and recall of the flagged answers; 0 if none is right."""
    right = int((flagged & bad).sum())
    return 2 * right / (int(flagged.sum()) + int(bad.sum())) if right else 0.0


def best_f1(risk: Floats, bad: Flags) -> tuple[float, float]:
    """Return the highest F1 of any threshold, and the lowest risk that it flags."""
    order = np.argsort(-risk, kind="stable")
    right = np.cumsum(bad[order])
    scores = 2 * right / (np.arange(1, len(risk) + 1) + bad.sum())
    ends = np.append(np.diff(risk[order]) != 0, True)  # answers of one risk are flagged together
    best = int(np.argmax(np.where(ends, scores, -1.0)))
    return float(scores[best]), float(risk[order][best])


def interval(figure: Callable[[npt.NDArray[np.intp]], float], sources: Sequence[str], seed: int = 0) -> Interval:
    """Return the figure of all rows, with the interval of a bootstrap that draws sources, not answers."""
    names, of_row = np.unique(np.array(sources), return_inverse=True)
    rows = [np.flatnonzero(of_row == i) for i in range(len(names))]
    chance = np.random.default_rng(seed)
    drawn = [
        figure(np.concatenate([rows[i] for i in chance.integers(0, len(rows), len(rows))])) for _ in range(RESAMPLES)
    ]
    defined = [value for value in drawn if np.isfinite(value)]
    low, high = np.quantile(defined, (0.025, 0.975)) if defined else (float("nan"), float("nan"))
    return Interval(figure(np.arange(len(sources))), float(low), float(high))


def best_f1_interval(risk: Floats, bad: Flags, sources: Sequence[str]) -> Interval:
    """Return the best F1 with its interval; each draw with bad answers has its own best threshold."""
    return interval(lambda rows: best_f1(risk[rows], bad[rows])[0] if bad[rows].any() else float("nan"), sources)


def length_quartiles(length: Floats) -> npt.NDArray[np.intp]:
    """Return the quartile of each length, from 0 for the shortest."""
    return np.searchsorted(np.quantile(length, (0.25, 0.5, 0.75)), length)


class Bin(NamedTuple):
    """Answers of similar risk: how many, what was predicted on average, and the share that was bad."""

    answers: int
    predicted: float
    real: float

    def __str__(self) -> str:
        return f"{self.predicted:.2f} / {self.real:.2f}"


def calibration(risk: Floats, bad: Flags, bins: int = 5) -> list[Bin]:
    """Cut the answers into bins of equal size by their risk, the lowest first."""
    parts = np.array_split(np.argsort(risk, kind="stable"), bins)
    return [Bin(len(rows), float(risk[rows].mean()), float(bad[rows].mean())) for rows in parts if len(rows)]


def auroc_interval(risk: Floats, bad: Flags, sources: Sequence[str]) -> Interval:
    """Return the AUROC with its interval."""
    return interval(lambda rows: auroc(risk[rows], bad[rows]), sources)


def f1_interval(flagged: Flags, bad: Flags, sources: Sequence[str]) -> Interval:
    """Return the F1 with its interval; draws without bad answers do not count."""
    return interval(lambda rows: f1(flagged[rows], bad[rows]) if bad[rows].any() else float("nan"), sources)
