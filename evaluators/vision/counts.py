"""What an image adds to its window, and what the window's sums come to: the parts of `object_detection`.

Their names carry what is no class: IoU thresholds in thousandths, and the bin of a score, its hundredths rounded down.

    images.FIRST.LAST.STEP.LOWEST  images compared; IoU thresholds of average precision and lowest score of recall
    expected                       objects of a class
    predicted.SCORE                predictions of it in images with an object of it
    unexpected.SCORE               predictions of it in other images
    matched.FIRST.LAST.SCORE       predictions that are true from one IoU threshold to another
    true.SCORE                     predictions that are true at the curve's IoU threshold
    misclassified.SCORE            predictions that are false there and lie on an object of another class
    mistaken.SCORE                 objects on which a prediction of another class lies, the best of these having SCORE,
                                   and none of their own with a score as high has found them
    corrected.SCORE                those of them that one with this lower score finds

So at a score threshold, with sums over the bins from it on: false positives are predicted + unexpected - true, of which
those not misclassified are hallucinations; false negatives are expected - true, of which mistaken - corrected are
misclassifications, and of the rest there is no prediction.

A class has, of each score that came up, at most six counts, and of matches one for each run of thresholds: ten or so of
ten thresholds, since most predictions are true from the lowest threshold on. A window of 20 classes and scores all over
has some 10,000.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.classification.score_bins import score_bin
from ragtide.evaluators.parts import part_key
from ragtide.evaluators.vision.matching import NONE, Matches, matches
from ragtide.evaluators.vision.polygons import Floats
from ragtide.evaluators.vision.regions import Scene


class Grid(NamedTuple):
    """IoU thresholds of average precision in thousandths, and the minimum score of recall in hundredths."""

    first: int
    last: int
    step: int
    lowest: int

    @property
    def ious(self) -> range:
        """The thresholds, ascending."""
        return range(self.first, self.last + 1, self.step)


class Errors(NamedTuple):
    """Indices of false predictions and missed objects, at the IoU threshold of the curve and any score."""

    misclassifications: list[int]
    hallucinations: list[int]
    mistaken: list[int]
    unpredicted: list[int]


class ImageCounts(NamedTuple):
    """The parts of an image, and the errors of its model."""

    parts: dict[str, float]
    errors: Errors


def count(scene: Scene, overlaps: Floats, grid: Grid, curve_iou: float) -> ImageCounts:
    """Count the parts of one image, whose predictions all have scores. `overlaps` are IoUs, [predicted, expected]."""
    counts: Counter[str] = Counter({part_key(f"images.{'.'.join(map(str, grid))}"): 1})
    scores = [region.score or 0.0 for region in scene.predicted]
    bins = [score_bin(score) for score in scores]
    labels = np.array([region.label for region in scene.expected], object)
    same = np.array([labels == region.label for region in scene.predicted], bool).reshape(overlaps.shape)
    counts.update(part_key("expected", region.label) for region in scene.expected)
    present = {region.label for region in scene.expected}
    for region, place in zip(scene.predicted, bins, strict=True):
        there = region.label in present
        counts[part_key(f"{'predicted' if there else 'unexpected'}.{place}", region.label)] += 1
    found = matches(overlaps, same, scores, [*(iou / 1000 for iou in grid.ious), curve_iou])
    for prediction, first, last in _runs_of_true(found[:-1] != NONE):
        name = f"matched.{grid.ious[first]}.{grid.ious[last]}.{bins[prediction]}"
        counts[part_key(name, scene.predicted[prediction].label)] += 1
    errors = _curve(counts, scene, bins, found[-1], (overlaps >= curve_iou) & ~same)
    return ImageCounts({key: float(number) for key, number in counts.items()}, errors)


def _runs_of_true(true: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """Return the intervals of True in each column: column, first row and last row."""
    edges = np.diff(np.pad(true, ((1, 1), (0, 0))).astype(np.int8), axis=0)
    columns, rows = np.nonzero(edges.T)  # column by column, where each starts and the row after its end in turn
    return zip(columns[::2].tolist(), rows[::2].tolist(), (rows[1::2] - 1).tolist(), strict=True)


def _curve(
    counts: Counter[str], scene: Scene, bins: Sequence[int], found: Matches, others: npt.NDArray[np.bool_]
) -> Errors:
    """Count for the curve. `others` says which predictions overlap which objects of another label."""
    errors = Errors([], [], [], [])
    finders = {thing: prediction for prediction, thing in enumerate(found.tolist()) if thing != NONE}
    for place, region in enumerate(scene.predicted):
        if found[place] != NONE:
            counts[part_key(f"true.{bins[place]}", region.label)] += 1
        elif others[place].any():
            counts[part_key(f"misclassified.{bins[place]}", region.label)] += 1
            errors.misclassifications.append(place)
        else:
            errors.hallucinations.append(place)
    for place, region in enumerate(scene.expected):
        mistaken = max((bins[one] for one in np.flatnonzero(others[:, place]).tolist()), default=-1)
        right = bins[finders[place]] if place in finders else -1
        if mistaken > right:
            counts[part_key(f"mistaken.{mistaken}", region.label)] += 1
            if right >= 0:
                counts[part_key(f"corrected.{right}", region.label)] += 1
        if place not in finders:
            (errors.mistaken if mistaken >= 0 else errors.unpredicted).append(place)
    return errors
