"""Average precision and recall of windows against pycocotools, Valor's numbers and hand-worked scenes."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from ragtide.evaluators.builtin.object_detection import Params, object_detection
from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.classification.score_bins import BINS
from ragtide.evaluators.outcome import Evidence, Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.parts import Combined, name_and_labels
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.trace import Boxes
from ragtide.evaluators.vision.average_precision import average_precision
from tests.evaluators.builtin.scoring import outcome, outcomes
from tests.evaluators.vision.scenes import (
    CLASSES,
    IOUS,
    Said,
    by_pycocotools,
    image,
    images,
    mask,
    polygon,
    redrawn,
    region,
)

GOLDEN = (
    Boxes(
        (region("cat", (10, 10, 60, 40)), region("dog", (87, 10, 158, 410))),
        (
            region("cat", (10, 10, 60, 40), 0.3),
            region("cat", (87, 10, 158, 410), 0.0),
            region("dog", (89, 12, 150, 400), 0.8),
        ),
    ),
    Boxes(
        (region("cat", (15, 0, 70, 20)),),
        (region("cat", (15, 0, 70, 20), 0.98), region("cat", (16, 1, 60, 19), 0.5)),
    ),
)
UNIT = (0, 0, 10, 10)


def summed(given: Sequence[Outcome]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in given:
        if isinstance(one, Scored):
            total.update(one.parts)
    return total


def window(scenes: Sequence[Boxes], params: dict[str, Any] | None = None) -> Combined:
    given = outcomes("object_detection", [image(scene) for scene in scenes], params)
    assert object_detection.combine is not None
    return object_detection.combine(summed(given))


def test_the_scene_on_which_all_libraries_agree() -> None:
    """pycocotools 2.0.11, faster-coco-eval 1.8.0 and valor-lite 0.39.0; recall from a score of 0.5 on is Valor's."""
    made = window(GOLDEN)
    assert made.metrics["map"] == pytest.approx(0.7674917491749176, abs=1e-12)
    assert made.metrics["map_50"] == pytest.approx(0.9174917491749175, abs=1e-12)
    assert made.metrics["mar"] == pytest.approx(0.85)
    assert made.per["ap"]["cat", "0.5"].value == pytest.approx(0.8349834983498351, abs=1e-12)
    assert made.per["ap"]["cat", "0.5"].records == 2
    assert made.per["ap"]["dog", "0.8"] == (1.0, 1)
    assert made.per["ap"]["dog", "0.85"] == (0.0, 1)
    assert [made.per["ap_averaged"][label,].value for label in ("cat", "dog")] == pytest.approx(
        [0.834983498349835, 0.7]
    )
    assert [made.per["ar"][label,].value for label in ("cat", "dog")] == pytest.approx([1.0, 0.7])
    valors = window(GOLDEN, {"recall_score_threshold": 0.5})
    assert [valors.per["ar"][label,].value for label in ("cat", "dog")] == pytest.approx([0.5, 0.7])
    assert valors.metrics["mar"] == pytest.approx(0.6)


@pytest.mark.parametrize(("expected", "found"), [(10, 7), (20, 7), (50, 47), (100, 57)])
def test_recalls_are_exact_hundredths(expected: int, found: int) -> None:
    """All that was found is true, so that each recall reached has precision 1. pycocotools misses the last one."""
    true = np.ones((1, found))
    ours = average_precision(true, true[0], expected)[0]
    assert ours == pytest.approx((100 * found // expected + 1) / 101, abs=1e-12)
    recalls = np.arange(1, found + 1) / expected
    reached = np.searchsorted(recalls, np.linspace(0, 1, 101)) < found  # as COCOeval.accumulate does
    assert reached.sum() / 101 == pytest.approx(ours - 1 / 101, abs=1e-12)


@settings(deadline=None)
@given(images(hundredths=True))
def test_scores_in_hundredths_give_what_pycocotools_gives(scenes: list[Boxes]) -> None:
    made, said = window(scenes), by_pycocotools(scenes)
    assert {labels[0] for labels in made.per.get("ar", {})} == said.keys()
    for label, one in said.items():
        assert [made.per["ap"][label, f"{iou:g}"].value for iou in IOUS] == pytest.approx(one.ap, abs=1e-9)
        assert made.per["ap_averaged"][label,].value == pytest.approx(np.mean(one.ap), abs=1e-9)
        assert made.per["ar"][label,].value == pytest.approx(one.recall, abs=1e-9)
    if said:
        assert made.metrics["map"] == pytest.approx(np.mean([one.ap for one in said.values()]), abs=1e-9)
        assert made.metrics["map_50"] == pytest.approx(np.mean([one.ap[0] for one in said.values()]), abs=1e-9)
        assert made.metrics["mar"] == pytest.approx(np.mean([one.recall for one in said.values()]), abs=1e-9)


@settings(deadline=None)
@given(images(hundredths=False))
def test_with_other_scores_average_precision_stays_within_the_error_that_is_stated(scenes: list[Boxes]) -> None:
    given = outcomes("object_detection", [image(scene) for scene in scenes])
    said: dict[str, Said] = by_pycocotools(scenes)
    made = window(scenes)
    for label, one in said.items():
        ours = np.array([made.per["ap"][label, f"{iou:g}"].value for iou in IOUS])
        most = true_ones_first(summed(given), label)
        assert (ours <= np.array(one.ap) + 1e-9).all()
        assert (np.array(one.ap) <= most + 1e-9).all()
        assert made.per["ar"][label,].value == pytest.approx(one.recall, abs=1e-9)


def true_ones_first(parts: Counter[str], label: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Average precision if in each bin all true predictions had higher scores than all others."""
    true, predicted = np.zeros((len(IOUS), 2 * (BINS + 1))), np.zeros((len(IOUS), 2 * (BINS + 1)))
    for key, count in parts.items():
        name, labels = name_and_labels(key)
        kind, *numbers = name.split(".")
        if labels == (label,) and kind == "predicted":
            predicted[:, 2 * int(numbers[0])] += count
        elif labels == (label,) and kind == "matched":
            within = [int(numbers[0]) <= round(iou * 1000) <= int(numbers[1]) for iou in IOUS]
            true[within, 2 * int(numbers[2]) + 1] += count
    predicted[:, 1::2] = true[:, 1::2]
    predicted[:, ::2] -= true[:, 1::2]
    expected = parts[f"expected\t{label}"]
    return np.array([average_precision(t[None], p, expected)[0] for t, p in zip(true, predicted, strict=True)])


def test_average_precision_by_hand() -> None:
    """Two objects; right at 0.9, wrong at 0.8, right at 0.7: 51 recalls at precision 1, 50 at 2/3."""
    true, predicted = np.zeros((1, BINS + 1)), np.zeros(BINS + 1)
    true[0, [90, 70]] = 1
    predicted[[90, 80, 70]] = 1
    assert average_precision(true, predicted, 2) == pytest.approx([(51 + 50 * 2 / 3) / 101])
    assert average_precision(true, predicted, 4) == pytest.approx([(26 + 25 * 2 / 3) / 101])


@settings(deadline=None)
@given(images(hundredths=True))
def test_the_curve_is_that_of_counting_at_each_score(scenes: list[Boxes]) -> None:
    parts = summed(outcomes("object_detection", [image(scene) for scene in scenes]))
    for threshold in {round(of["score"] * 100) for scene in scenes for of in scene.predicted or ()} | {0, 100}:
        for label in CLASSES:
            by_hand = zip(*(counted(scene, label, threshold / 100) for scene in scenes), strict=True)
            assert curve(parts, label, threshold) == tuple(map(sum, by_hand))


def test_a_prediction_of_another_class_counts_until_one_of_its_own_is_as_sure() -> None:
    cat = region("cat", UNIT)
    sure = Boxes((cat,), (region("cat", UNIT, 0.9), region("dog", UNIT, 0.5)))
    late = Boxes((cat,), (region("cat", UNIT, 0.5), region("dog", UNIT, 0.9)))
    for scene, seen in ((sure, [(1, 0), (1, 0), (0, 0)]), (late, [(1, 0), (0, 1), (0, 0)])):
        parts = summed(outcomes("object_detection", [image(scene)]))
        told = [curve(parts, "cat", threshold) for threshold in (30, 70, 95)]
        assert [(true, mistaken) for true, _, _, mistaken, _ in told] == seen
        assert [unpredicted for *_, unpredicted in told] == [0, 0, 1]


def curve(parts: Counter[str], label: str, threshold: int) -> tuple[int, int, int, int, int]:
    """What `counted` tells, from sums of parts."""
    found = dict.fromkeys(("predicted", "unexpected", "true", "misclassified", "mistaken", "corrected"), 0)
    for key, number in parts.items():
        name, labels = name_and_labels(key)
        kind, *places = name.split(".")
        if kind in found and labels == (label,) and int(places[0]) >= threshold:
            found[kind] += int(number)
    false = found["predicted"] + found["unexpected"] - found["true"]
    missed = int(parts[f"expected\t{label}"]) - found["true"]
    mistaken = found["mistaken"] - found["corrected"]
    return found["true"], found["misclassified"], false - found["misclassified"], mistaken, missed - mistaken


def iou(one: dict[str, list[float]], other: dict[str, list[float]]) -> float:
    a, b = one["box"], other["box"]
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return width * height / (areas - width * height)


def counted(scene: Boxes, label: str, threshold: float) -> tuple[int, int, int, int, int]:
    """True, misclassified and hallucinated predictions of the class; its objects mistaken, and with no prediction."""
    things: list[Any] = list(scene.expected or ())
    seen: list[Any] = [of for of in scene.predicted or () if of["score"] >= threshold]
    left = [of for of in things if of["label"] == label]
    result = Counter[str]()
    for one in sorted((of for of in seen if of["label"] == label), key=lambda of: -of["score"]):
        near = [thing for thing in left if iou(one, thing) >= 0.5]
        if near:
            best = max(iou(one, thing) for thing in near)
            chosen = max(place for place, thing in enumerate(left) if iou(one, thing) == best)
            del left[chosen]
            result["true"] += 1
        elif any(iou(one, thing) >= 0.5 for thing in things if thing["label"] != label):
            result["misclassified"] += 1
        else:
            result["hallucinated"] += 1
    for thing in left:
        wrong = any(iou(of, thing) >= 0.5 for of in seen if of["label"] != label)
        result["mistaken" if wrong else "unpredicted"] += 1
    return (
        result["true"],
        result["misclassified"],
        result["hallucinated"],
        result["mistaken"],
        result["unpredicted"],
    )


@settings(deadline=None, max_examples=50)
@given(images(hundredths=True))
def test_boxes_polygons_and_masks_of_one_scene_give_the_same(scenes: list[Boxes]) -> None:
    made = window(scenes)
    assert window([redrawn(scene, polygon) for scene in scenes]) == made
    assert window([redrawn(scene, mask) for scene in scenes]) == made


def test_errors_are_pointed_at_by_kind() -> None:
    scene = Boxes(
        (region("cat", UNIT), region("dog", (20, 0, 30, 10)), region("bird", (40, 0, 50, 10))),
        (
            region("cat", UNIT, 0.9),
            region("cat", UNIT, 0.4),  # a second one of the same object
            region("cat", (70, 0, 80, 10), 0.6),  # nothing there
            region("bird", (20, 0, 30, 10), 0.7),  # a dog
        ),
    )
    given = outcome("object_detection", boxes=scene)
    assert isinstance(given, Scored)
    assert given.evidence == (
        Evidence("boxes", 3, 4, kind="false_positive_misclassification", score=0.7),
        Evidence("boxes", 2, 3, kind="false_positive_hallucination", score=0.6),
        Evidence("boxes", 1, 2, kind="false_negative_misclassification"),
        Evidence("boxes", 2, 3, kind="false_negative_no_prediction"),
    )
    more = outcome("object_detection", {"pr_curve_max_examples": 2}, boxes=scene)
    assert isinstance(more, Scored)
    assert [place.start for place in more.evidence if place.kind == "false_positive_hallucination"] == [2, 1]
    none = outcome("object_detection", {"pr_curve_max_examples": 0}, boxes=scene)
    assert isinstance(none, Scored)
    assert not none.evidence


def test_predictions_of_a_class_that_the_image_has_not_count_in_the_curve_alone() -> None:
    alone = Boxes((region("cat", UNIT),), (region("cat", UNIT, 0.8),))
    beside = Boxes((region("cat", UNIT),), (region("cat", UNIT, 0.8), region("dog", (50, 50, 60, 60), 0.9)))
    assert window([beside]) == window([alone])
    assert window([Boxes((), (region("dog", UNIT, 0.9),)), alone]) == window([alone])
    assert summed(outcomes("object_detection", [image(beside)]))["unexpected.90\tdog"] == 1


def test_an_image_with_no_object_has_no_metrics_and_still_its_parts() -> None:
    given = outcome("object_detection", boxes=Boxes((), (region("dog", UNIT, 0.9),)))
    assert isinstance(given, Scored)
    assert given.metrics == {}
    assert given.parts == {"images.500.950.50.0": 1.0, "unexpected.90\tdog": 1.0}


def test_other_thresholds_and_none_at_one_half() -> None:
    made = window(GOLDEN, {"iou_thresholds": [0.75, 0.85, 0.1]})
    assert set(made.per["ap"]) == {(label, iou) for label in ("cat", "dog") for iou in ("0.75", "0.85")}
    assert set(made.metrics) == {"map", "mar"}
    assert made.metrics["mar"] == pytest.approx((1.0 + 0.5) / 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"iou_thresholds": (0.5, 0.95, 0.0001)},
        {"iou_thresholds": (0.5, 0.95, 0.001)},
        {"iou_thresholds": (0.0, 0.95, 0.05)},
        {"iou_thresholds": (0.9, 0.5, 0.05)},
        {"iou_thresholds": (0.5, 1.05, 0.05)},
        {"iou_thresholds": (0.5, 0.95, 0.0)},
        {"iou_thresholds": (0.5, float("nan"), 0.1)},
        {"iou_thresholds": (0.5, float("inf"), 0.1)},
        {"iou_thresholds": (0.5, 0.95)},
        {"recall_score_threshold": 0.333},
        {"recall_score_threshold": 1.5},
        {"pr_curve_iou_threshold": 0.0},
        {"pr_curve_max_examples": -1},
    ],
)
def test_parameters_that_no_count_can_serve_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Params(**wrong)


@pytest.mark.parametrize(
    ("boxes", "reason"),
    [
        (None, "missing_boxes"),
        (Boxes(None, (region("cat", UNIT, 0.5),)), "missing_expected_boxes"),
        (Boxes((region("cat", UNIT),), None), "missing_predicted_boxes"),
        (Boxes((), ()), "empty_boxes"),
        (Boxes((region("cat", UNIT),), (region("cat", UNIT),)), "missing_scores"),
        (Boxes((region("cat", UNIT),) * 501, (region("cat", UNIT, 0.5),) * 500), "too_long"),
        (Boxes((), (region("cat", UNIT, 0.5),) * 10_001), "too_long"),
    ],
)
def test_what_cannot_be_compared_is_no_zero(boxes: Boxes | None, reason: str) -> None:
    assert outcome("object_detection", boxes=boxes) == NotApplicable(reason)


def test_thousands_of_boxes_are_taken_where_few_are_expected() -> None:
    many = tuple(region(f"class {place % 7}", (place, 0, place + 10, 10), place % 101 / 100) for place in range(10_000))
    given = outcome("object_detection", boxes=Boxes((region("class 0", UNIT),) * 25, many))
    assert isinstance(given, Scored)
    assert given.parts["expected\tclass 0"] == 25


def test_a_malformed_region_is_named_and_not_quoted() -> None:
    wrong = region("Kassandra", (0, 0, float("nan"), 1), 0.5) | {"note": "Kassandra"}
    given = outcome("object_detection", boxes=Boxes((region("cat", UNIT),), (region("cat", UNIT, 0.5), wrong)))
    assert given == Failed("malformed_boxes", "boxes.predicted[1]: a box is four numbers: xmin, ymin, xmax, ymax")


def test_it_keeps_the_contract() -> None:
    check_evaluator(object_detection, [image(scene, f"t{place}") for place, scene in enumerate(GOLDEN)])


def test_without_shapely_it_is_unavailable_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragtide.evaluators.plan.find_spec", lambda name: None)
    plan = prepare({"object_detection": object_detection}, EvaluatorSettings(), "fast", None)
    assert plan.prepared == ()
    assert plan.unavailable == {"object_detection": "shapely not installed: pip install 'ragtide[vision]'"}


@pytest.mark.parametrize("empty", [1, 2])
def test_predicted_masks_without_a_pixel_match_nothing(empty: int) -> None:
    nothing = {"label": "cat", "mask": [[0] * 14] * 14, "score": 0.9}
    made = window([Boxes((mask(region("cat", (1, 1, 5, 5))),), (nothing,) * empty)])
    assert (made.metrics["map"], made.metrics["mar"]) == (0.0, 0.0)
