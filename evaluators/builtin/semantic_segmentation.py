from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.parts import MOST_PARTS, ClassValue, Combined, name_and_labels, part_key
from ragtide.evaluators.spec import Budget, Metric, NoParams, Shared, evaluator
from ragtide.evaluators.trace import Boxes
from ragtide.evaluators.vision.masks import Mask, common, pixels, union
from ragtide.evaluators.vision.regions import MOST_REGIONS, Region, read_scene


@dataclass(frozen=True, slots=True)
class Inputs:
    """The masks of the image, and those predicted."""

    boxes: Boxes


METRICS = (
    Metric("mean_iou", threshold=0.5, primary=True, description="mean of iou over classes"),
    Metric("iou", per=("class",), description="pixels expected and predicted, of those that are either"),
)


def combine(parts: Mapping[str, float]) -> Combined:
    """Parts are pixels by class: in `both` masks, in `either`. A class without pixels is none."""
    eithers = {name_and_labels(key)[1]: count for key, count in parts.items() if key.startswith("either") and count}
    ious = {labels: parts.get(part_key("both", *labels), 0.0) / either for labels, either in eithers.items()}
    images = {labels: int(parts.get(part_key("images", *labels), 0.0)) for labels in ious}
    if not ious:
        return Combined()
    per = {labels: ClassValue(iou, images[labels]) for labels, iou in sorted(ious.items())}
    return Combined({"mean_iou": sum(ious.values()) / len(ious)}, {"iou": per})


@evaluator(
    "semantic_segmentation",
    version=1,
    domain="vision",
    method="window",
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
    budget=Budget(characters=None, regions=MOST_REGIONS),  # `read_scene` limits what regions are written in
    combine=combine,
)
def semantic_segmentation(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """Predicted against expected masks of images, pixel by pixel: each has a label and a "mask", rows of 0 and 1 or
    COCO's {"size", "counts"}. Masks of one class are one, scores do not matter, and a class that is predicted where
    none has it counts, with an IoU of 0. Boxes and polygons have no pixels. Beyond 500,000 runs of pixels, expected or
    predicted, an image is too long.
    """
    for row in rows:
        yield _evaluate(row.boxes)


def _evaluate(boxes: Boxes) -> Outcome:
    scene = read_scene(boxes, ("mask",))
    if isinstance(scene, (NotApplicable, Failed)):
        return scene
    expected, predicted = _by_class(scene.expected), _by_class(scene.predicted)
    parts: dict[str, float] = {}
    for label in sorted(expected.keys() | predicted.keys()):
        one, other = (union(masks.get(label, ())) for masks in (expected, predicted))
        both = int(common(one, other).sum())
        parts[part_key("both", label)] = float(both)
        parts[part_key("either", label)] = float(pixels(one) + pixels(other) - both)
        parts[part_key("images", label)] = 1.0
    if len(parts) > MOST_PARTS:
        return NotApplicable("too_long")
    return Scored(combine(parts).metrics, parts=parts)


def _by_class(regions: Sequence[Region]) -> dict[str, list[Mask]]:
    masks: dict[str, list[Mask]] = defaultdict(list)
    for region in regions:
        if isinstance(region.shape, Mask):
            masks[region.label].append(region.shape)
    return masks
