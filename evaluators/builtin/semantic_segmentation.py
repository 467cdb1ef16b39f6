from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.parts import MOST_PARTS, ClassValue, Combined, name_and_labels, part_key
from ragtide.evaluators.spec import Budget, Metric, NoParams, Shared, evaluator
from ragtide.evaluators.trace import Boxes
from ragtide.evaluators.vision.masks import Mask, common, pixels, union
from ragtide.evaluators.vision.regions import MOST_REGIONS, Region, read_scene


@dataclass(frozen=True, slots=True)
class Inputs:
    """The expected and predicted masks of the image."""

    boxes: Boxes


METRICS = (
    Metric("mean_iou", threshold=0.5, primary=True, description="mean of iou over classes"),
    Metric(
        "iou", per=("class",), description="pixels expected and predicted / pixels expected or predicted, of a class"
    ),
)


def combine(parts: Mapping[str, float]) -> Combined:
    """Compute the metrics from pixels by class, in `both` masks and in `either`, without classes of no pixels."""
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
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
    budget=Budget(characters=None, regions=MOST_REGIONS),  # `read_scene` limits the texts of regions
    combine=combine,
)
def semantic_segmentation(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Predicted and expected masks of images, pixel by pixel. Each has a label and a "mask": rows of 0 and 1, or
    {"size", "counts"} of COCO. Masks of one class are joined, and scores are ignored. A class that is only predicted
    counts with an IoU of 0. Boxes and polygons have no pixels. An image is too_long beyond 500,000 runs of pixels,
    expected or predicted.
    """
    scene = read_scene(row.boxes, ("mask",))
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
