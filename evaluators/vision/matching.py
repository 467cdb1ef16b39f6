"""Matches predictions with objects: greedily by score, within one image and one label."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.vision.polygons import Floats

NONE = -1
Matches = npt.NDArray[np.int64]


def matches(overlaps: Floats, same: npt.NDArray[np.bool_], scores: Sequence[float], ious: Sequence[float]) -> Matches:
    """For each IoU threshold and prediction its object, or `NONE`: int64 [thresholds, predictions].

    As COCO's: predictions choose in the order of their scores, equal ones in the order given, each the object of its
    label with the highest IoU among those left, of equal ones the last; an IoU equal to the threshold will do. So a
    prediction's match does not depend on those with lower scores. `same` says which pairs have one label.
    """
    order = sorted(range(len(scores)), key=lambda prediction: -scores[prediction])
    choices = _choices(overlaps, same & (overlaps >= min(ious)))
    found = np.full((len(ious), len(scores)), NONE, np.int64)
    for row, iou in enumerate(ious):
        taken: set[int] = set()
        for prediction in order:
            for overlap, thing in choices[prediction]:
                if overlap < iou:
                    break
                if thing not in taken:
                    taken.add(thing)
                    found[row, prediction] = thing
                    break
    return found


def _choices(overlaps: Floats, near: npt.NDArray[np.bool_]) -> list[list[tuple[float, int]]]:
    """Return for each prediction the objects that overlap it, the best first."""
    predictions, things = np.nonzero(near)
    choices: list[list[tuple[float, int]]] = [[] for _ in overlaps]
    pairs = zip(predictions.tolist(), overlaps[near].tolist(), things.tolist(), strict=True)
    for prediction, overlap, thing in sorted(pairs, reverse=True):
        choices[prediction].append((overlap, thing))
    return choices
