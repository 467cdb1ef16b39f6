from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, model_validator

from ragtide.evaluators.outcome import Evidence, Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.parts import MOST_PARTS
from ragtide.evaluators.spec import Budget, Extra, Metric, Shared, evaluator
from ragtide.evaluators.trace import Boxes
from ragtide.evaluators.vision.counts import Errors, Grid, count
from ragtide.evaluators.vision.errors import TooLarge
from ragtide.evaluators.vision.overlaps import overlaps
from ragtide.evaluators.vision.regions import MOST_REGIONS, Region, read_scene
from ragtide.evaluators.vision.windows import combine

MAX_THRESHOLDS = 20
Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The expected and predicted objects of the image."""

    boxes: Boxes


class Params(BaseModel, frozen=True, extra="forbid"):
    """When objects match, and which predictions count."""

    iou_thresholds: tuple[Share, Share, Share] = Field(
        (0.5, 0.95, 0.05),
        description="IoU thresholds of average precision and recall: first, last and step. Multiples of 0.001, "
        f"{MAX_THRESHOLDS} at most.",
    )
    pr_curve_iou_threshold: Share = Field(0.5, description="IoU threshold of the precision-recall curve.")
    pr_curve_max_examples: int = Field(
        1,
        ge=0,
        le=100,
        description="Maximum examples: objects reported for each image and kind of error, and traces on the dashboard "
        "for each class and kind.",
    )
    recall_score_threshold: float = Field(
        0.0, ge=0, le=1, description="Minimum score of a prediction that counts for recall. A multiple of 0.01."
    )

    @model_validator(mode="after")
    def _whole(self) -> "Params":
        if any(abs(value * 1000 - round(value * 1000)) > 1e-6 for value in self.iou_thresholds):
            raise ValueError("iou_thresholds must be multiples of 0.001")
        grid = self.grid()
        if not 1 <= len(grid.ious) <= MAX_THRESHOLDS:
            raise ValueError(f"iou_thresholds (first, last, step) must give 1 to {MAX_THRESHOLDS} thresholds")
        if abs(self.recall_score_threshold * 100 - grid.lowest) > 1e-6:
            raise ValueError("recall_score_threshold must be a multiple of 0.01")
        return self

    def grid(self) -> Grid:
        """The thresholds, as the parts name them."""
        first, last, step = (round(value * 1000) for value in self.iou_thresholds)
        return Grid(first, last, step, round(self.recall_score_threshold * 100))


METRICS = (
    Metric(
        "map", threshold=0.5, primary=True, description="mean of ap over classes with objects and over IoU thresholds"
    ),
    Metric("map_50", threshold=0.5, description="mean of ap at IoU 0.5; absent if 0.5 is no threshold"),
    Metric("mar", threshold=0.5, description="mean of ar over classes with objects"),
    Metric("ap", per=("class", "iou"), description="average precision of a class at an IoU threshold"),
    Metric("ap_averaged", per=("class",), description="average precision of a class, mean over IoU thresholds"),
    Metric("ar", per=("class",), description="recall of a class, mean over IoU thresholds"),
)


@evaluator(
    "object_detection",
    version=1,
    domain="vision",
    method="window",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    budget=Budget(characters=None, regions=MOST_REGIONS),  # `read_scene` limits the texts of regions
    combine=combine,
    extra=Extra("ragtide[vision]", ("shapely",)),
)
def object_detection(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Predicted and expected objects of images. Each has a label, a score if predicted, and a "box" [xmin, ymin, xmax,
    ymax], a "polygon" [[x, y], ...] or a "mask" (rows of 0 and 1, or {"size", "counts"} of COCO). Matching and average
    precision are those of COCO, with scores rounded down to hundredths. Average recall is that of Valor: per class,
    over predictions with a score of `recall_score_threshold` or more. Predictions of a class that the image does not
    contain count in the curves only. An image is too_long beyond 100,000 corners or 500,000 runs of pixels, expected or
    predicted.
    """
    scene = read_scene(row.boxes)
    if isinstance(scene, (NotApplicable, Failed)):
        return scene
    if any(region.score is None for region in scene.predicted):
        return NotApplicable("missing_scores")
    try:
        counted = count(scene, overlaps(scene), params.grid(), params.pr_curve_iou_threshold)
    except TooLarge:
        return NotApplicable("too_long")
    if len(counted.parts) > MOST_PARTS:
        return NotApplicable("too_long")
    evidence = tuple(_examples(counted.errors, scene.predicted, params.pr_curve_max_examples))
    return Scored(combine(counted.parts).metrics, parts=counted.parts, evidence=evidence)


def _examples(errors: Errors, predicted: Sequence[Region], most: int) -> Iterator[Evidence]:
    """Point at the false predictions with the highest scores, and at the first missed objects."""
    for kind, places in (
        ("false_positive_misclassification", errors.misclassifications),
        ("false_positive_hallucination", errors.hallucinations),
    ):
        for place in sorted(places, key=lambda place: -(predicted[place].score or 0.0))[:most]:
            yield Evidence("boxes", place, place + 1, kind=kind, score=predicted[place].score)
    for kind, places in (
        ("false_negative_misclassification", errors.mistaken),
        ("false_negative_no_prediction", errors.unpredicted),
    ):
        for place in places[:most]:
            yield Evidence("boxes", place, place + 1, kind=kind)
