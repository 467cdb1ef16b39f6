"""IoU of masks over windows, against pixels counted by numpy."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ragtide.evaluators.builtin.semantic_segmentation import semantic_segmentation
from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.outcome import NotApplicable, Scored
from ragtide.evaluators.parts import Combined
from ragtide.evaluators.trace import Boxes
from tests.evaluators.builtin.scoring import outcome, outcomes
from tests.evaluators.vision.scenes import image, region

CLASSES = np.array(["sky", "road", "car"])
Pixels = npt.NDArray[np.int64]
LABELLED = arrays(np.int64, (4, 5), elements=st.integers(-1, 2))  # the class of each pixel, -1 for none


def masks(pixels: Pixels) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"label": str(name), "mask": (pixels == number).astype(int).tolist()} for number, name in enumerate(CLASSES)
    )


def window(scenes: Sequence[Boxes]) -> Combined:
    total: Counter[str] = Counter()
    for one in outcomes("semantic_segmentation", [image(scene) for scene in scenes]):
        assert isinstance(one, Scored)
        total.update(one.parts)
    assert semantic_segmentation.combine is not None
    return semantic_segmentation.combine(total)


@settings(deadline=None)
@given(st.lists(st.tuples(LABELLED, LABELLED), min_size=1, max_size=4))
def test_iou_is_that_of_the_pixels_of_all_images_together(scenes: list[tuple[Pixels, Pixels]]) -> None:
    expected, predicted = (np.array(side) for side in zip(*scenes, strict=True))
    made = window([Boxes(masks(one), masks(other)) for one, other in scenes])
    ious = {}
    for number, name in enumerate(CLASSES):
        either = ((expected == number) | (predicted == number)).sum()
        if either:
            ious[str(name),] = ((expected == number) & (predicted == number)).sum() / either
    assert {labels: found.value for labels, found in made.per.get("iou", {}).items()} == pytest.approx(ious)
    assert made.metrics == (pytest.approx({"mean_iou": np.mean(list(ious.values()))}) if ious else {})


def test_by_hand() -> None:
    """Three of four pixels are expected, two predicted, one of them right: 1 / 4; and a class that is nowhere."""
    scene = Boxes(
        ({"label": "sky", "mask": [[1, 1], [1, 0]]},),
        ({"label": "sky", "mask": [[1, 0], [0, 1]]}, {"label": "car", "mask": [[0, 1], [0, 0]], "score": 0.2}),
    )
    given = outcome("semantic_segmentation", boxes=scene)
    assert isinstance(given, Scored)
    assert given.parts == {
        "both\tcar": 0.0,
        "either\tcar": 1.0,
        "images\tcar": 1.0,
        "both\tsky": 1.0,
        "either\tsky": 4.0,
        "images\tsky": 1.0,
    }
    assert given.metrics == {"mean_iou": 0.125}


def test_masks_of_one_class_are_one() -> None:
    halves = ({"label": "sky", "mask": [[1, 1, 0]]}, {"label": "sky", "mask": [[0, 1, 1]]})
    assert window([Boxes(({"label": "sky", "mask": [[1, 1, 1]]},), halves)]).metrics == {"mean_iou": 1.0}


@pytest.mark.parametrize(
    ("boxes", "reason"),
    [
        (None, "missing_boxes"),
        (Boxes((), None), "missing_predicted_boxes"),
        (Boxes((region("cat", (0, 0, 1, 1)),), ()), "other_form"),
        (Boxes((), ()), "empty_boxes"),
    ],
)
def test_without_masks_it_has_nothing_to_say(boxes: Boxes | None, reason: str) -> None:
    assert outcome("semantic_segmentation", boxes=boxes) == NotApplicable(reason)


def test_it_keeps_the_contract() -> None:
    pixels = np.arange(20).reshape(4, 5) % 3
    scenes = [Boxes(masks(pixels), masks(np.roll(pixels, shift, axis=1))) for shift in range(3)]
    check_evaluator(semantic_segmentation, [image(scene, f"t{place}") for place, scene in enumerate(scenes)])
