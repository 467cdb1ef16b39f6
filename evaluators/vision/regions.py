"""What a trace says is in its image, read from `boxes.expected` and `boxes.predicted`; nothing in it is trusted.

Each is a list of regions, and each region has a `label`, where predicted a `score` from 0 to 1, and one of

    "box": [xmin, ymin, xmax, ymax]
    "polygon": [[x, y], [x, y], [x, y], ...]               simple: its edges do not cross
    "mask": [[0, 1, 1], [0, 1, 0]]                         rows of the image
    "mask": {"size": [height, width], "counts": [...]}     COCO's run-length encoding, by columns, zeros first;
                                                           `counts` may be COCO's compressed string

Coordinates are continuous: a box from 0 to 2 is 2 wide. All regions of a trace have one form, its masks one size. Other
fields of a region are left alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ragtide.evaluators.outcome import Failed, NotApplicable
from ragtide.evaluators.parts import class_label
from ragtide.evaluators.trace import Boxes
from ragtide.evaluators.vision.errors import Malformed, TooLarge
from ragtide.evaluators.vision.masks import Mask, encoded_length, read_mask
from ragtide.evaluators.vision.polygons import MOST_VERTICES, Floats, read_polygon

FORMS = ("box", "polygon", "mask")
MOST_REGIONS = 10_000  # expected or predicted: the evaluators' budget
MOST_POINTS = {"box": 100_000, "polygon": 100_000, "mask": 500_000}  # corners, or runs of pixels, of one side
MOST_WRITTEN = 4_000_000  # numbers, or characters of counts, that the masks of all regions are written in
FARTHEST = 1e9  # from 0, of a coordinate

Box = tuple[float, float, float, float]


class Region(NamedTuple):
    """One object: its place, its label and, if predicted, its score."""

    label: str
    score: float | None
    shape: Box | Floats | Mask


class Scene(NamedTuple):
    """Expected and predicted objects of an image, all of one form."""

    form: str
    expected: list[Region]
    predicted: list[Region]


def read_scene(boxes: Boxes, forms: Sequence[str] = FORMS) -> Scene | NotApplicable | Failed:
    """Read the image of a trace, or return why it cannot be compared: not recorded, malformed or too large."""
    if boxes.expected is None or boxes.predicted is None:
        return NotApplicable("missing_expected_boxes" if boxes.expected is None else "missing_predicted_boxes")
    if not boxes.expected and not boxes.predicted:
        return NotApplicable("empty_boxes")
    try:
        form = _form("expected", boxes.expected) or _form("predicted", boxes.predicted)
        if form not in forms:
            return NotApplicable("other_form")
        if sum(encoded_length(region.get("mask")) for region in (*boxes.expected, *boxes.predicted)) > MOST_WRITTEN:
            return NotApplicable("too_long")
        expected = _regions("expected", form, boxes.expected)
        predicted = _regions("predicted", form, boxes.predicted)
        _check(form, [*expected, *predicted])
    except TooLarge:
        return NotApplicable("too_long")
    except Malformed as error:
        return Failed("malformed_boxes", str(error))
    return Scene(form, expected, predicted)


def _form(side: str, regions: Sequence[Mapping[str, Any]]) -> str:
    for place, region in enumerate(regions):
        if sum(form in region for form in FORMS) != 1:
            raise Malformed(f"boxes.{side}[{place}]: a region has one of {', '.join(FORMS)}")
    return next((form for region in regions[:1] for form in FORMS if form in region), "")


def _regions(side: str, form: str, regions: Sequence[Mapping[str, Any]]) -> list[Region]:
    found = []
    points = 0
    for place, region in enumerate(regions):
        try:
            if form not in region:
                raise Malformed("all regions of a trace have one form")
            found.append(Region(_label(region), _score(region), _READERS[form](region[form])))
        except Malformed as error:
            raise Malformed(f"boxes.{side}[{place}]: {error}") from None
        points += _points(found[-1].shape)
        if points > MOST_POINTS[form]:
            raise TooLarge
    return found


def _check(form: str, regions: Sequence[Region]) -> None:
    if form == "mask" and len({(r.shape.height, r.shape.width) for r in regions if isinstance(r.shape, Mask)}) > 1:
        raise Malformed("boxes: the masks of a trace have one size")


def _points(shape: Box | Floats | Mask) -> int:
    return len(shape.runs) if isinstance(shape, Mask) else len(shape)


def _label(region: Mapping[str, Any]) -> str:
    label = region.get("label")
    if not isinstance(label, str):
        raise Malformed("a region has a label")
    return class_label(label)


def _score(region: Mapping[str, Any]) -> float | None:
    score = region.get("score")
    if score is not None and not (type(score) in (int, float) and 0 <= score <= 1):
        raise Malformed("a score is a number from 0 to 1")
    return score


def _read_box(written: Any) -> Box:
    if not _are_numbers(written, 4):
        raise Malformed("a box is four numbers: xmin, ymin, xmax, ymax")
    left, top, right, bottom = map(float, written)
    if left > right or top > bottom:
        raise Malformed("a box is no less than 0 wide and high: xmin, ymin, xmax, ymax")
    return left, top, right, bottom


def _read_polygon(written: Any) -> Floats:
    if isinstance(written, (list, tuple)) and len(written) > MOST_VERTICES + 1:
        raise TooLarge
    if not isinstance(written, (list, tuple)) or not all(_are_numbers(point, 2) for point in written):
        raise Malformed("a polygon is a list of corners [x, y]")
    return read_polygon([(float(x), float(y)) for x, y in written])


def _are_numbers(written: Any, count: int) -> bool:
    if not isinstance(written, (list, tuple)) or len(written) != count:
        return False
    return all(type(number) in (int, float) and -FARTHEST <= number <= FARTHEST for number in written)


_READERS: Mapping[str, Callable[[Any], Box | Floats | Mask]] = {
    "box": _read_box,
    "polygon": _read_polygon,
    "mask": read_mask,
}
