"""The dashboard of objects: what the evaluator counted, rolled up, against hand-worked images and pycocotools."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from ragtide.dashboards.build import build
from ragtide.drift.settings import RuleOverride, RuleSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.registry import load
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.trace import Boxes
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.dashboards.lint import faults, linked_columns, panels, queries
from tests.dashboards.macros import Choice, expanded
from tests.drift.world import World, score_row
from tests.evaluators.builtin.scoring import outcomes
from tests.evaluators.builtin.test_object_detection import counted
from tests.evaluators.vision.scenes import CLASSES, by_pycocotools, image, region
from tests.infra.fresh_database import fresh_database

FIRST, SECOND, THIRD = (0, 0, 10, 10), (20, 0, 30, 10), (40, 0, 50, 10)
NOWHERE = (70, 0, 80, 10)
BY_HAND = (
    Boxes(
        (region("cat", FIRST), region("dog", SECOND), region("bird", THIRD)),
        (
            region("cat", FIRST, 0.9),
            region("cat", FIRST, 0.4),  # a second one of the same object
            region("cat", NOWHERE, 0.6),
            region("bird", SECOND, 0.7),  # a dog; nothing is on the bird
        ),
    ),
    Boxes((), (region("dog", FIRST, 0.9),)),  # an image without objects
    Boxes((region("cat", FIRST),), (region("cat", FIRST, 0.5), region("dog", FIRST, 0.9))),
)
KINDS = ("tp", "fp: misclassification", "fp: hallucination", "fn: misclassification", "fn: no prediction")
COUNTS = {  # objects, and as KINDS
    ("cat", "0"): (2, 2, 0, 2, 0, 0),
    ("cat", "50"): (2, 2, 0, 1, 0, 0),
    ("cat", "70"): (2, 1, 0, 0, 1, 0),  # the dog on the second cat is surer
    ("cat", "95"): (2, 0, 0, 0, 0, 2),
    ("dog", "50"): (1, 0, 1, 1, 1, 0),
    ("dog", "75"): (1, 0, 1, 1, 0, 1),  # the bird on it is gone
    ("bird", "70"): (1, 0, 1, 0, 0, 1),
    ("bird", "75"): (1, 0, 0, 0, 0, 1),
}
Ask = Callable[..., list[dict[str, Any]]]


def drawn(seed: int) -> list[Boxes]:
    """Ten images on a small grid, with right, shifted, misnamed and invented predictions; scores all different."""
    random = Random(seed)

    def place() -> list[int]:
        x, y, width, height = random.randint(0, 6), random.randint(0, 6), random.randint(1, 6), random.randint(1, 6)
        return [x, y, x + width, y + height]

    scores = iter(random.sample(range(101), 90))
    scenes = []
    for _ in range(10):
        things = [region(random.choice(CLASSES), place()) for _ in range(random.randint(1, 6))]
        seen = []
        for _ in range(9):
            thing = random.choice(things)
            x0, y0, x1, y1 = thing["box"]
            near = [[x0, y0, x1, y1], [x0, y0, x1 + 1, y1], place()]
            label = random.choice((thing["label"], thing["label"], *CLASSES))
            seen.append(region(label, random.choice(near), next(scores) / 100))
        scenes.append(Boxes(tuple(things), tuple(seen)))
    return scenes


DRAWN = drawn(3)


def stored(world: World, app: str, scenes: Sequence[Boxes]) -> None:
    """One image a minute, as the evaluator scores it and the worker writes it."""
    for minute, said in enumerate(outcomes("object_detection", [image(scene) for scene in scenes])):
        assert isinstance(said, Scored)
        row = score_row(
            world.at(60 * minute + 1),
            f"{app}-{minute}",
            said.metrics,
            app=app,
            evaluator="object_detection",
            parts=said.parts,
            evidence=msgspec.json.encode(said.evidence).decode(),
        )
        world.store([row])


def built(**how: Any) -> dict[str, Any]:
    return build(load(), **how)["objects"]


@pytest.fixture(scope="module")
def ask(clickhouse_server: EmbeddedClickHouse) -> Iterator[Ask]:
    """The rows of a query over the images worked by hand, or over the drawn ones; from a score on, in hundredths."""
    with fresh_database(clickhouse_server) as database:
        world = World(database, evaluators=load())
        stored(world, "hand", BY_HAND)
        stored(world, "drawn", DRAWN)
        world.advance(3600)
        alone = EvaluatorSettings(enabled=("object_detection",))
        asked = dict(queries(built(database=database.name, evaluators=alone)))

        def rows(where: str, score: str = "50", app: str = "hand", **chosen: Choice) -> list[dict[str, Any]]:
            every: Choice = ["$__all"]
            here = {"run": "live", "app": app, "environment": every, "model": every, "resolution": "0", "score": score}
            return database.rows(expanded(asked[where], world.at(-60), world.at(3600), 60, here | chosen))

        yield rows


@pytest.mark.clickhouse
def test_every_query_gives_something_and_bears_any_choice(ask: Ask) -> None:
    names = [where for where, _ in queries(built())]
    assert len(names) > 12
    for where in names:
        if "not scored, why" not in where:  # all were
            assert ask(where, environment=["prod"], model=["m1"]), where
        if where != "variable run":
            found = ask(where, app="O'Hara \\ co", environment=["it's"], model=["a\\'b"], run="replay'1")
            assert not found or where.startswith("variable"), where


@pytest.mark.clickhouse
@pytest.mark.parametrize("score", sorted({score for _, score in COUNTS}))
def test_errors_by_class_are_those_worked_by_hand(ask: Ask, score: str) -> None:
    found = {row["class"]: row for row in ask("table Errors by class A", score)}
    assert set(found) == {"cat", "dog", "bird"}
    for (label, at), counts in COUNTS.items():
        if at == score:
            assert tuple(found[label][name] for name in ("objects", *KINDS)) == counts


@pytest.mark.clickhouse
def test_shares_by_class_and_no_number_where_nothing_was_predicted(ask: Ask) -> None:
    found = {row["class"]: row for row in ask("table Errors by class A", "60")}
    shares = ("precision", "recall", "f1")
    assert [found["cat"][share] for share in shares] == [0.5, 0.5, 0.5]  # 0.9 is right, 0.6 is not
    assert [found["bird"][share] for share in shares] == [0.0, 0.0, 0.0]
    above = {row["class"]: row for row in ask("table Errors by class A", "75")}
    assert [above["bird"][share] for share in shares] == [None, 0.0, 0.0]


@pytest.mark.clickhouse
@pytest.mark.parametrize("score", ["0", "35", "70", "100"])
def test_kinds_of_errors_are_those_of_counting_one_by_one(ask: Ask, score: str) -> None:
    found = {row["class"]: tuple(row[kind] for kind in KINDS) for row in ask("table Errors by class A", score, "drawn")}
    for label in CLASSES:
        one_by_one = zip(*(counted(scene, label, int(score) / 100) for scene in DRAWN), strict=True)
        assert found[label] == tuple(map(sum, one_by_one))


@pytest.mark.clickhouse
def test_the_curve_is_that_worked_by_hand(ask: Ask) -> None:
    points = [
        (row["recall"], row["precision"]) for row in ask("xychart Precision and recall A") if row["class"] == "cat"
    ]
    assert list(dict.fromkeys(points)) == [  # of scores from 0.9, 0.6, 0.5 and 0.4 on
        (0.5, 1.0),
        (0.5, 0.5),
        (1.0, pytest.approx(2 / 3)),
        (1.0, 0.5),
    ]
    assert len(points) == 91  # no prediction has a higher score: no precision


@pytest.mark.clickhouse
def test_the_area_under_the_curve_is_what_pycocotools_says(ask: Ask) -> None:
    shown = ask("xychart Precision and recall A", app="drawn")
    said = by_pycocotools(DRAWN, unexpected=True)
    assert set(said) == set(CLASSES)
    for label, one in said.items():
        points = [(row["recall"], row["precision"]) for row in shown if row["class"] == label]
        best = [
            max((precision for recall, precision in points if recall >= least / 100 - 1e-9), default=0.0)
            for least in range(101)
        ]
        assert 0.05 < one.ap[0] < 0.95
        assert np.mean(best) == pytest.approx(one.ap[0], abs=1e-9)


@pytest.mark.clickhouse
def test_predictions_and_objects_over_time_add_up_image_by_image(ask: Ask) -> None:
    seen = [tuple(row[kind] for kind in KINDS[:3]) for row in ask("timeseries Predictions A")]
    assert seen == [(1, 1, 1), (0, 0, 1), (1, 1, 0)]
    there = [tuple(row[kind] for kind in ("found", *KINDS[3:])) for row in ask("timeseries Objects A")]
    assert there == [(1, 1, 1), (0, 0, 0), (1, 0, 0)]


@pytest.mark.clickhouse
def test_examples_are_the_newest_traces_of_each_kind(ask: Ask) -> None:
    found = {(row["class"], row["kind"]): (row["images"], row["trace"]) for row in ask("table Examples A")}
    assert found == {
        ("bird", "fn: no prediction"): (1, "hand-0"),
        ("bird", "fp: misclassification"): (1, "hand-0"),
        ("cat", "fp: hallucination"): (1, "hand-0"),
        ("cat", "tp"): (2, "hand-2"),  # one at most
        ("dog", "fn: misclassification"): (1, "hand-0"),
        ("dog", "fp: hallucination"): (1, "hand-1"),
        ("dog", "fp: misclassification"): (1, "hand-2"),
    }
    above = {(row["class"], row["kind"]): row["trace"] for row in ask("table Examples A", "70")}
    assert above["cat", "fn: misclassification"] == "hand-2"
    for title in ("Examples", "Regions"):
        assert all(row["trace_link"].startswith("/d/ragtide-trace?") for row in ask(f"table {title} A"))
        (table,) = [panel for panel in panels(built()) if panel["title"] == title]
        assert linked_columns(table) == {"trace": "${__data.fields.trace_link}"}


@pytest.mark.clickhouse
def test_regions_are_what_the_evidence_points_at(ask: Ask) -> None:
    found = [(row["trace"], row["error"], row["region"], row["score"]) for row in ask("table Regions A")]
    assert found == [
        ("hand-2", "fp: misclassification", "boxes.predicted[1]", 0.9),
        ("hand-1", "fp: hallucination", "boxes.predicted[0]", 0.9),
        ("hand-0", "fn: misclassification", "boxes.expected[1]", None),
        ("hand-0", "fn: no prediction", "boxes.expected[2]", None),
        ("hand-0", "fp: hallucination", "boxes.predicted[2]", 0.6),
        ("hand-0", "fp: misclassification", "boxes.predicted[3]", 0.7),
    ]


@pytest.mark.clickhouse
def test_average_precision_and_recall_over_time_are_those_of_each_window(ask: Ask) -> None:
    """Of the first image: cats 1, dogs and birds 0; the second has none; the third's cat is found."""
    third = pytest.approx(1 / 3)
    assert [row["map"] for row in ask("timeseries object_detection.map A")] == [third, None, 1.0]
    others = ask("timeseries object_detection: map_50 and mar A")
    assert [(row["map_50"], row["mar"]) for row in others] == [(third, third), (None, None), (1.0, 1.0)]


def test_the_linter_has_nothing_to_say() -> None:
    assert list(faults(built())) == []


def test_what_is_chosen_at_first_is_a_score_of_one_half() -> None:
    (score,) = [each for each in built()["templating"]["list"] if each["name"] == "score"]
    assert (score["current"]["text"], score["current"]["value"]) == ("0.5", "50")
    assert len(score["options"]) == 21


def test_the_iou_and_examples_are_those_of_the_settings() -> None:
    given = {"object_detection": {"pr_curve_iou_threshold": 0.75, "pr_curve_max_examples": 3}}
    made = built(evaluators=EvaluatorSettings(params=given))
    assert "1, 3)" in dict(queries(made))["table Examples A"]
    told = {panel["title"]: panel.get("description", "") for panel in panels(made)}
    assert all("IoU of 0.75" in told[title] for title in ("Errors by class", "Precision and recall", "Predictions"))
    with pytest.raises(ConfigError, match="pr_curve_iou_threshold"):
        built(evaluators=EvaluatorSettings(params={"object_detection": {"pr_curve_iou_threshold": 2}}))


def test_the_line_is_that_of_the_rules() -> None:
    rules = RuleSettings(overrides=(RuleOverride(metric="object_detection.map", min=0.7),))
    shown = {panel["title"]: panel for panel in panels(built(rules=rules))}
    steps = shown["object_detection.map"]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [(step["value"], step["color"]) for step in steps] == [(None, "red"), (0.7, "green")]


def test_without_the_evaluator_there_is_no_dashboard_of_it() -> None:
    without = {id_: each for id_, each in load().items() if id_ != "object_detection"}
    assert set(build(load())) - set(build(without)) == {"objects"}
