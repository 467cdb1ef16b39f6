"""Intersection over union of predicted and expected regions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragtide.evaluators.vision.errors import TooLarge
from ragtide.evaluators.vision.masks import Mask, common
from ragtide.evaluators.vision.polygons import Floats, areas, areas_in_common
from ragtide.evaluators.vision.regions import Scene

MOST_PAIRS = 250_000
MOST_RUN_PAIRS = 10_000_000  # runs of predicted masks, once for each expected mask


def overlaps(scene: Scene) -> Floats:
    """Return float64 [predicted, expected], from 0 to 1; 0 if neither has an area. Raises `TooLarge`."""
    predicted = [region.shape for region in scene.predicted]
    expected = [region.shape for region in scene.expected]
    if len(predicted) * len(expected) > MOST_PAIRS:
        raise TooLarge
    if not predicted or not expected:
        return np.zeros((len(predicted), len(expected)))
    return {"box": _of_boxes, "polygon": _of_polygons, "mask": _of_masks}[scene.form](predicted, expected)


def _of_boxes(predicted: Sequence[Any], expected: Sequence[Any]) -> Floats:
    one, other = np.array(predicted)[:, None], np.array(expected)
    sides = np.minimum(one[..., 2:], other[..., 2:]) - np.maximum(one[..., :2], other[..., :2])
    return _ratio(
        np.maximum(sides, 0.0).prod(axis=-1),
        (one[..., 2:] - one[..., :2]).prod(axis=-1),
        (other[..., 2:] - other[..., :2]).prod(axis=-1),
    )


def _of_polygons(predicted: Sequence[Floats], expected: Sequence[Floats]) -> Floats:
    return _ratio(areas_in_common(predicted, expected), areas(predicted)[:, None], areas(expected))


def _of_masks(predicted: Sequence[Mask], expected: Sequence[Mask]) -> Floats:
    runs = np.concatenate([mask.runs for mask in predicted])
    if len(runs) * len(expected) > MOST_RUN_PAIRS:
        raise TooLarge
    owners = np.repeat(np.arange(len(predicted)), [len(mask.runs) for mask in predicted])
    shared = [np.bincount(owners, common(runs, mask.runs), len(predicted)) for mask in expected]
    return _ratio(
        np.column_stack(shared),
        np.array([mask.area for mask in predicted], np.float64)[:, None],
        np.array([mask.area for mask in expected], np.float64),
    )


def _ratio(both: Floats, one: Floats, other: Floats) -> Floats:
    either = one + other - both
    ratio: Floats = np.divide(both, either, out=np.zeros(both.shape), where=either > 0.0)
    return np.clip(ratio, 0.0, 1.0)
