"""Average precision and recall from summed parts, which `ragtide.evaluators.vision.counts` defines."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ragtide.evaluators.classification.score_bins import BINS
from ragtide.evaluators.parts import ClassValue, Combined, name_and_labels
from ragtide.evaluators.vision.average_precision import Counts, average_precision, average_recall
from ragtide.evaluators.vision.counts import Grid

_MAP_50 = 500  # thousandths


@dataclass(slots=True)
class _Class:
    """Counts of one class: `true` is [IoU thresholds, score bins]."""

    true: Counts
    predicted: Counts
    expected: float = 0.0


def combine(parts: Mapping[str, float]) -> Combined:
    """Average over the classes with objects. Empty without any."""
    grid = _grid(parts)
    if grid is None:
        return Combined()
    classes = dict(sorted(_by_class(parts, grid).items()))
    if not classes:
        return Combined()
    ious = list(grid.ious)
    precisions = {label: average_precision(one.true, one.predicted, one.expected) for label, one in classes.items()}
    recalls = {label: average_recall(one.true, one.expected, grid.lowest) for label, one in classes.items()}
    by_iou = np.mean(list(precisions.values()), axis=0)
    metrics = {"map": float(by_iou.mean()), "mar": float(np.mean(list(recalls.values())))}
    if _MAP_50 in ious:
        metrics["map_50"] = float(by_iou[ious.index(_MAP_50)])
    objects = {label: int(one.expected) for label, one in classes.items()}
    return Combined(
        metrics,
        {
            "ap": {
                (label, f"{iou / 1000:g}"): ClassValue(float(value), objects[label])
                for label, values in precisions.items()
                for iou, value in zip(ious, values, strict=True)
            },
            "ap_averaged": _per_class({label: float(values.mean()) for label, values in precisions.items()}, objects),
            "ar": _per_class(recalls, objects),
        },
    )


def _per_class(values: Mapping[str, float], objects: Mapping[str, int]) -> dict[tuple[str, ...], ClassValue]:
    return {(label,): ClassValue(value, objects[label]) for label, value in values.items()}


def _grid(parts: Mapping[str, float]) -> Grid | None:
    """Return the grid of the images. Windows of other settings have another fingerprint, so there is at most one."""
    return next((Grid(*map(int, key.split(".")[1:])) for key in parts if key.startswith("images.")), None)


def _by_class(parts: Mapping[str, float], grid: Grid) -> dict[str, _Class]:
    row = {iou: place for place, iou in enumerate(grid.ious)}
    classes: dict[str, _Class] = {}
    for key, count in parts.items():
        name, labels = name_and_labels(key)
        kind, *numbers = name.split(".")
        if kind not in ("expected", "predicted", "matched"):
            continue
        one = classes.setdefault(labels[0], _Class(np.zeros((len(row), BINS + 1)), np.zeros(BINS + 1)))
        if kind == "expected":
            one.expected += count
        elif kind == "predicted":
            one.predicted[int(numbers[0])] += count
        else:
            first, last, score = map(int, numbers)
            one.true[row[first] : row[last] + 1, score] += count
    return classes
