"""Average precision and recall of one class, from counts by score.

See `ragtide.evaluators.classification.score_bins`.
"""

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.float64]
_RECALLS = np.arange(101)  # hundredths


def average_precision(true: Counts, predicted: Counts, expected: float) -> Counts:
    """By 101-point interpolation, as COCO's: the mean of the best precision at a recall of 0, 0.01, ... 1 or more.

    The recalls are exact hundredths. Those of pycocotools are floats, a few of which are rounded up: of 10 objects it
    requires 8 for a recall of 0.7, where 7 are enough here.

    `true` is [IoU thresholds, score bins], `predicted` [score bins], `expected` how many objects there are, not 0.
    Gives float64 [IoU thresholds].

    Predictions of one bin count as of one score. The last point of a bin is one of the exact curve, so this is never
    above the exact value; it is below it by no more than it would rise if the true ones came first in every bin. It is
    exact where scores are whole hundredths, equal ones being told apart by nothing, and where no bin is mixed.
    """
    found = np.cumsum(true[:, ::-1], axis=1)
    precision = found / np.maximum(np.cumsum(predicted[::-1]), 1.0)
    best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    best = np.column_stack((best, np.zeros(len(best))))  # of a recall that is not reached
    needed = np.ceil(_RECALLS * expected / 100)  # objects found, at least
    places = np.array([np.searchsorted(row, needed) for row in found])
    means: Counts = np.take_along_axis(best, places, axis=1).mean(axis=1)
    return means


def average_recall(true: Counts, expected: float, lowest: int) -> float:
    """Return the mean over IoU thresholds of the recall of predictions in the score bin `lowest` and above."""
    return float((true[:, lowest:].sum(axis=1) / expected).mean())
