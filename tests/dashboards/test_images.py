"""Objects and masks in images, rolled up: their windows, those of their classes, and what the dashboard shows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ragtide.dashboards.build import build
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.registry import load
from ragtide.evaluators.trace import Boxes
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.dashboards.lint import queries
from tests.dashboards.macros import Choice, expanded
from tests.drift.world import World, score_row
from tests.evaluators.builtin.scoring import outcomes
from tests.evaluators.builtin.test_object_detection import GOLDEN
from tests.evaluators.vision.scenes import image
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse

CHOSEN: dict[str, Choice] = {
    "run": "live", "app": "shop", "environment": ["$__all"], "model": ["$__all"], "resolution": "0"
}  # fmt: skip
MASKS = (
    Boxes(({"label": "sky", "mask": [[1, 1, 0]]},), ({"label": "sky", "mask": [[1, 0, 0]]},)),
    Boxes(({"label": "sky", "mask": [[1, 1, 1]]},), ({"label": "car", "mask": [[0, 1, 0]]},)),
)
Ask = Callable[[str], list[dict[str, Any]]]


def stored(world: World, id: str, scenes: tuple[Boxes, ...]) -> None:
    """One image a minute, as the evaluator scores it."""
    given = outcomes(id, [image(scene) for scene in scenes])
    for minute, said in enumerate(given):
        assert isinstance(said, Scored)
        row = score_row(world.at(60 * minute + 1), f"{id}{minute}", said.metrics, evaluator=id, parts=said.parts)
        world.store([row])


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    with fresh_database(clickhouse_server) as database:
        here = World(database, evaluators=load())
        stored(here, "object_detection", GOLDEN)
        stored(here, "semantic_segmentation", MASKS)
        here.advance(2 * 3600)
        yield here


@pytest.fixture(scope="module")
def ask(world: World) -> Ask:
    asked = dict(queries(build(load(), database=world.database.name)["application"]))
    return lambda where: world.database.rows(expanded(asked[where], world.at(-60), world.at(3600), 60, CHOSEN))


def numbers(world: World, size_s: int, metric: str) -> dict[str, list[Any]]:
    """Value and records of a metric's windows by series, in order of time."""
    rows = world.database.rows(
        "SELECT segment_value, value, scored FROM windows FINAL WHERE metric = {metric:String} AND size_s = "
        "{size_s:UInt32} ORDER BY start",
        {"metric": metric, "size_s": size_s},
    )
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row["segment_value"], []).append((row["value"], row["scored"]))
    return found


def test_an_hour_is_what_pycocotools_says_of_all_its_images(world: World) -> None:
    assert numbers(world, 60, "object_detection.map")[""] == [(0.85, 1), (1.0, 1)]
    assert numbers(world, 3600, "object_detection.map")[""] == [(pytest.approx(0.7674917491749176), 2)]
    assert numbers(world, 3600, "object_detection.map_50")[""] == [(pytest.approx(0.9174917491749175), 2)]
    by_iou = numbers(world, 3600, "object_detection.ap")
    assert len(by_iou) == 2 * 10
    assert by_iou["cat/0.5"] == [(pytest.approx(0.8349834983498351), 2)]
    assert by_iou["dog/0.85"] == [(0.0, 1)]
    assert numbers(world, 3600, "object_detection.ar")["dog"] == [(pytest.approx(0.7), 1)]


def test_pixels_of_an_hour_are_one_sum(world: World) -> None:
    assert numbers(world, 3600, "semantic_segmentation.iou") == {"sky": [(0.2, 2)], "car": [(0.0, 1)]}
    assert numbers(world, 3600, "semantic_segmentation.mean_iou")[""] == [(pytest.approx(0.1), 2)]


def test_the_dashboard_has_a_table_for_classes_and_one_for_classes_and_thresholds(ask: Ask) -> None:
    by_iou = {row["class/iou"]: row for row in ask("table object_detection: by class and iou A")}
    assert len(by_iou) == 2 * 10
    assert (by_iou["dog/0.85"]["ap"], by_iou["dog/0.85"]["of ap"]) == (0.0, 1)
    by_class = {row["class"]: row for row in ask("table object_detection: by class A")}
    assert by_class["dog"]["ap_averaged"] == pytest.approx(0.7)
    assert {row["class"]: row["iou"] for row in ask("table semantic_segmentation: by class A")} == {
        "sky": pytest.approx(0.25),  # of windows of a minute: 1/2 and 0, by their images
        "car": 0.0,
    }
    assert [row["map"] for row in ask("timeseries object_detection.map A")] == [0.85, 1.0]
