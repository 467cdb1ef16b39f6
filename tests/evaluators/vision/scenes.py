"""Images with boxes: drawn at random, and what pycocotools says of them."""

import contextlib
import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from ragtide.evaluators.trace import Boxes, Trace
from tests.evaluators.builtin.scoring import trace

CLASSES = ("cat", "dog", "bird")
IOUS = [iou / 1000 for iou in range(500, 1000, 50)]


class Said(NamedTuple):
    """Of a class: average precision by IoU threshold, and mean recall over them."""

    ap: list[float]
    recall: float


def image(boxes: Boxes, name: str = "t") -> Trace:
    """A trace with this image."""
    return trace(trace_id=name, boxes=boxes)


def region(label: str, box: Sequence[float], score: float | None = None) -> dict[str, Any]:
    """As a trace has it."""
    return {"label": label, "box": list(box)} | ({} if score is None else {"score": score})


def polygon(of: dict[str, Any]) -> dict[str, Any]:
    """The region with its box as a polygon."""
    x0, y0, x1, y1 = of["box"]
    return {key: of[key] for key in of if key != "box"} | {"polygon": [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]}


def mask(of: dict[str, Any]) -> dict[str, Any]:
    """The region with its box, of whole numbers below 14, as rows of pixels."""
    x0, y0, x1, y1 = of["box"]
    rows = [[int(x0 <= x < x1 and y0 <= y < y1) for x in range(14)] for y in range(14)]
    return {key: of[key] for key in of if key != "box"} | {"mask": rows}


def redrawn(scene: Boxes, as_form: Callable[[dict[str, Any]], dict[str, Any]]) -> Boxes:
    """The image with its regions in another form."""
    return Boxes(*(tuple(as_form(dict(of)) for of in side or ()) for side in (scene.expected, scene.predicted)))


def boxes(scores: st.SearchStrategy[float] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Regions on a small grid, so that many overlap and IoUs of a threshold come up."""
    corners = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 6), st.integers(1, 6))
    made = st.builds(
        lambda label, at: region(label, (at[0], at[1], at[0] + at[2], at[1] + at[3])), st.sampled_from(CLASSES), corners
    )
    return made if scores is None else st.builds(lambda of, score: of | {"score": score}, made, scores)


@st.composite
def images(draw: st.DrawFn, hundredths: bool) -> list[Boxes]:
    """One to four images; scores all different, and whole hundredths if wanted."""
    score = st.integers(0, 100).map(lambda n: n / 100) if hundredths else st.floats(0, 1)
    scores = draw(st.lists(score, max_size=20, unique=True))
    things = [draw(st.lists(boxes(), max_size=6)) for _ in range(draw(st.integers(1, 4)))]
    seen: list[list[dict[str, Any]]] = [[] for _ in things]
    for number in scores:
        of = draw(st.integers(0, len(things) - 1))
        about_right = draw(st.booleans())
        if things[of] and about_right:
            thing = draw(st.sampled_from(things[of]))
            shift = draw(st.sampled_from([(0, 0, 0, 0), (0, 0, 1, 0), (0, 1, 0, 1)]))
            box = [a + b for a, b in zip(thing["box"], shift, strict=True)]
            label = draw(st.sampled_from((thing["label"], *CLASSES)))
            seen[of].append(region(label, box, number))
        else:
            seen[of].append(draw(boxes(st.just(number))))
    return [Boxes(tuple(expected), tuple(predicted)) for expected, predicted in zip(things, seen, strict=True)]


def by_pycocotools(scenes: Sequence[Boxes], unexpected: bool = False) -> dict[str, Said]:
    """Of each class with objects; with predictions of a label that an image has no object of only if `unexpected`."""
    things: list[dict[str, Any]] = []
    seen: list[dict[str, Any]] = []
    for number, scene in enumerate(scenes, start=1):
        labels = {of["label"] for of in scene.expected or ()}
        things += [_annotation(number, of) for of in scene.expected or ()]
        seen += [_annotation(number, of) for of in scene.predicted or () if unexpected or of["label"] in labels]
    if not things:
        return {}
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(_coco(things, len(scenes)), _coco(seen, len(scenes)), "bbox")
        evaluation.params.maxDets = [1_000]
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.params.iouThrs = np.array(IOUS)
        evaluation.params.recThrs = np.arange(101) / 100
        evaluation.evaluate()
        evaluation.accumulate()
    precision, recall = evaluation.eval["precision"], evaluation.eval["recall"]
    return {
        label: Said(precision[:, :, k, 0, 0].mean(axis=1).tolist(), float(recall[:, k, 0, 0].mean()))
        for k, label in enumerate(CLASSES)
        if any(of["category_id"] == k for of in things)
    }


def _annotation(number: int, of: Any) -> dict[str, Any]:
    x0, y0, x1, y1 = of["box"]
    found = {"image_id": number, "category_id": CLASSES.index(of["label"]), "bbox": [x0, y0, x1 - x0, y1 - y0]}
    return found | {"area": (x1 - x0) * (y1 - y0), "iscrowd": 0, "score": of.get("score", 1.0)}


def _coco(annotations: Sequence[dict[str, Any]], number: int) -> Any:
    coco = COCO()
    coco.dataset = {
        "images": [{"id": id} for id in range(1, number + 1)],
        "categories": [{"id": id, "name": name} for id, name in enumerate(CLASSES)],
        "annotations": [{"id": id, **of} for id, of in enumerate(annotations, start=1)],
    }
    coco.createIndex()
    return coco
