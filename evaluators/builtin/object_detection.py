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

MOST_THRESHOLDS = 20
Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is in the image, and what was seen there."""

    boxes: Boxes


class Params(BaseModel, frozen=True, extra="forbid"):
    """What a match is, and which predictions count."""

    iou_thresholds: tuple[Share, Share, Share] = Field(
        (0.5, 0.95, 0.05),
        description="IoU thresholds of average precision and recall, multiples of 0.001: first, last, step; "
        f"{MOST_THRESHOLDS} at most.",
    )
    pr_curve_iou_threshold: Share = Field(0.5, description="IoU threshold of the precision-recall curve.")
    pr_curve_max_examples: int = Field(
        1,
        ge=0,
        le=100,
        description="Most places pointed at, of each image and kind of error; and on the dashboard most traces, of "
        "each class and kind.",
    )
    recall_score_threshold: float = Field(
        0.0, ge=0, le=1, description="Lowest score of a prediction that counts for recall, a multiple of 0.01."
    )

    @model_validator(mode="after")
    def _whole(self) -> "Params":
        if any(abs(value * 1000 - round(value * 1000)) > 1e-6 for value in self.iou_thresholds):
            raise ValueError("iou_thresholds must be multiples of 0.001")
        grid = self.grid()
        if not 1 <= len(grid.ious) <= MOST_THRESHOLDS:
            raise ValueError(f"iou_thresholds must be from 1 to {MOST_THRESHOLDS} of them: first, last, step")
        if abs(self.recall_score_threshold * 100 - grid.lowest) > 1e-6:
            raise ValueError("recall_score_threshold must be a multiple of 0.01: counts are exact there")
        return self

    def grid(self) -> Grid:
        """The thresholds as parts have them."""
        first, last, step = (round(value * 1000) for value in self.iou_thresholds)
        return Grid(first, last, step, round(self.recall_score_threshold * 100))


METRICS = (
    Metric("map", threshold=0.5, primary=True, description="mean of ap over classes that have objects, and over IoUs"),
    Metric("map_50", threshold=0.5, description="mean of ap at IoU 0.5; absent where that is no threshold"),
    Metric("mar", threshold=0.5, description="mean of ar over classes that have objects"),
    Metric("ap", per=("class", "iou"), description="average precision of a class at an IoU threshold"),
    Metric("ap_averaged", per=("class",), description="mean over IoU thresholds of a class's average precision"),
    Metric("ar", per=("class",), description="mean over IoU thresholds of a class's recall"),
)


@evaluator(
    "object_detection",
    version=1,
    domain="vision",
    method="window",
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    budget=Budget(characters=None, regions=MOST_REGIONS),  # `read_scene` limits what regions are written in
    combine=combine,
    extra=Extra("ragtide[vision]", ("shapely",)),
)
def object_detection(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Predicted against expected objects of images. Each has a label, where predicted a score, and a "box" [xmin, ymin,
    xmax, ymax], a "polygon" [[x, y], ...] or a "mask": rows of 0 and 1, or COCO's {"size", "counts"}. Matching and
    average precision are COCO's, from scores in hundredths; average recall is Valor's: of a class, of predictions with
    a score that will do. Predictions of a class that an image has no object of count in the curves alone. Beyond
    100,000 corners or 500,000 runs of pixels, expected or predicted, an image is too long.
    """
    for row in rows:
        yield _evaluate(row.boxes, params)


def _evaluate(boxes: Boxes, params: Params) -> Outcome:
    scene = read_scene(boxes)
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
    """Places in the lists of regions: false predictions with the highest scores, and the first of missed objects."""
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
