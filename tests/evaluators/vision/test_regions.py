"""What a trace says of its image: read, or told why not, and never quoted."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.evaluators.outcome import Failed, NotApplicable
from ragtide.evaluators.trace import Boxes
from ragtide.evaluators.vision.masks import Mask
from ragtide.evaluators.vision.regions import Scene, read_scene

BOX = {"label": "cat", "box": [0, 0, 1, 1]}
POLYGON = {"label": "cat", "polygon": [[0, 0], [1, 0], [1, 1]]}
MASK = {"label": "cat", "mask": [[0, 1]]}
CANARY = "Kassandra"


def said(*expected: Any) -> str:
    outcome = read_scene(Boxes(expected, ()))
    assert isinstance(outcome, Failed), outcome
    assert outcome.kind == "malformed_boxes"
    return outcome.detail


def test_each_form_is_read() -> None:
    for of, form in ((BOX, "box"), (POLYGON, "polygon"), (MASK, "mask")):
        scene = read_scene(Boxes((of,), (of | {"score": 1, "id": "left alone"},)))
        assert isinstance(scene, Scene)
        assert scene.form == form
        assert (scene.expected[0].score, scene.predicted[0].score) == (None, 1)
        assert (scene.expected[0].label, scene.predicted[0].label) == ("cat", "cat")


def test_an_empty_box_is_a_box_and_a_negative_one_is_not() -> None:
    assert isinstance(read_scene(Boxes(({"label": "cat", "box": [1, 1, 1, 2]},), ())), Scene)
    assert "no less than 0 wide" in said({"label": "cat", "box": [1, 1, 0, 2]})
    assert "no less than 0 wide" in said({"label": "cat", "box": [0, 2, 1, 1]})


@pytest.mark.parametrize(
    ("region", "says"),
    [
        ({"label": "cat"}, "boxes.expected[1]: a region has one of box, polygon, mask"),
        (BOX | POLYGON, "boxes.expected[1]: a region has one of box, polygon, mask"),
        ({"box": [0, 0, 1, 1]}, "boxes.expected[1]: a region has a label"),
        (BOX | {"label": 7}, "boxes.expected[1]: a region has a label"),
        (BOX | {"score": 1.01}, "boxes.expected[1]: a score is a number from 0 to 1"),
        (BOX | {"score": float("nan")}, "boxes.expected[1]: a score is a number from 0 to 1"),
        (BOX | {"score": True}, "boxes.expected[1]: a score is a number from 0 to 1"),
        (BOX | {"score": "0.5"}, "boxes.expected[1]: a score is a number from 0 to 1"),
        (BOX | {"box": [0, 0, 1]}, "boxes.expected[1]: a box is four numbers: xmin, ymin, xmax, ymax"),
        (BOX | {"box": [0, 0, 1, True]}, "boxes.expected[1]: a box is four numbers: xmin, ymin, xmax, ymax"),
        (BOX | {"box": [0, 0, 1, float("inf")]}, "boxes.expected[1]: a box is four numbers: xmin, ymin, xmax, ymax"),
        (BOX | {"box": [0, 0, 1, 10**400]}, "boxes.expected[1]: a box is four numbers: xmin, ymin, xmax, ymax"),
        (BOX | {"box": None}, "boxes.expected[1]: a box is four numbers: xmin, ymin, xmax, ymax"),
        (POLYGON, "boxes.expected[1]: all regions of a trace have one form"),
    ],
)
def test_what_is_wrong_is_told_and_where(region: dict[str, Any], says: str) -> None:
    assert said(BOX, region) == says


@pytest.mark.parametrize("points", [None, 3, [[0, 0], [1, 0], [1]], [[0, 0], [1, 0], [1, "1"]], [[0, 0], [1, 0], 7]])
def test_a_polygon_is_a_list_of_corners(points: Any) -> None:
    assert said({"label": "cat", "polygon": points}) == "boxes.expected[0]: a polygon is a list of corners [x, y]"


def test_masks_of_a_trace_have_one_size() -> None:
    other = {"label": "cat", "mask": [[0, 1], [0, 1]]}
    assert read_scene(Boxes((MASK,), (other,))) == Failed(
        "malformed_boxes", "boxes: the masks of a trace have one size"
    )


def test_predicted_ones_of_another_form_are_told() -> None:
    assert read_scene(Boxes((MASK,), (BOX,))) == Failed(
        "malformed_boxes", "boxes.predicted[0]: all regions of a trace have one form"
    )


def test_what_is_too_much_is_too_long() -> None:
    stripes = {"label": "cat", "mask": {"size": [2, 50_000], "counts": [2] * 50_000}}  # 25,000 runs
    assert isinstance(read_scene(Boxes((stripes,) * 20, ())), Scene)
    assert read_scene(Boxes((stripes,) * 21, ())) == NotApplicable("too_long")
    rows = {"label": "cat", "mask": [[0] * 1_000] * 1_000}
    assert isinstance(read_scene(Boxes((rows,) * 2, (rows,))), Scene)
    assert read_scene(Boxes((rows,) * 2, (rows,) * 2)) == NotApplicable("too_long")  # 4 million numbers in 4,000 rows
    line = {"label": "cat", "polygon": [[0, 1]] * 2_002}
    assert read_scene(Boxes((line,), ())) == NotApplicable("too_long")


def test_a_form_that_is_not_wanted_is_not_applicable() -> None:
    assert read_scene(Boxes((BOX,), ()), ("mask",)) == NotApplicable("other_form")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(CANARY),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["size", "counts", "x"]), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["label", "score", "box", "polygon", "mask"]), JSON), max_size=3))
def test_whatever_stands_there_gives_a_scene_or_a_reason(regions: list[dict[str, Any]]) -> None:
    scene = read_scene(Boxes(tuple(regions), ()))
    assert isinstance(scene, (Scene, NotApplicable, Failed))
    if isinstance(scene, Failed):
        assert CANARY not in scene.detail
    if isinstance(scene, Scene) and scene.form == "mask":
        assert all(isinstance(region.shape, Mask) for region in scene.expected)
