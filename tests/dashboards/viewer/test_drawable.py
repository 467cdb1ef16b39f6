"""A dashboard that the viewer cannot draw fails here."""

import re
from copy import deepcopy
from typing import Any

import pytest

from ragtide.dashboards.build import build
from ragtide.dashboards.viewer.catalogue import Catalogue
from ragtide.dashboards.viewer.queries import Scope, expand
from ragtide.evaluators.registry import load
from tests.dashboards.sample_rows import NOON
from tests.dashboards.shown_application import END
from tests.dashboards.viewer.drawable import faults
from tests.dashboards.viewer.gallery import gallery

DASHBOARDS = build(load())


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_viewer_draws_every_part_of_the_dashboard(name: str) -> None:
    assert list(faults(DASHBOARDS[name])) == []


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_viewer_expands_every_query_of_the_dashboard(name: str) -> None:
    (board,) = Catalogue({name: DASHBOARDS[name]}).boards.values()
    assert board.queries or name == "runbooks"
    for where, sql in board.queries.items():
        assert not re.search(r"\$[\w{]|\[\[", expand(sql, Scope(NOON, END, 60, board.defaults))), where


def test_the_gallery_of_the_tests_is_drawable_too() -> None:
    assert list(faults(gallery())) == []


def _change(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    document["panels"][0].update(changes)
    return document


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "piechart"},
        {"type": "text", "options": {"content": "<b>", "mode": "html"}},
        {"transparent": True},
        {"repeat": "app"},
        {"options": {"colorMode": "rainbow"}},
        {"options": {"reduceOptions": {"calcs": ["p99"]}}},
        {"transformations": [{"id": "organize", "options": {}}]},
        {"transformations": [{"id": "partitionByValues", "options": {"naming": {}}}]},
        {"fieldConfig": {"defaults": {"unit": "lightyears"}}},
        {"fieldConfig": {"defaults": {"color": {"mode": "continuous-GrYlRd"}}}},
        {"fieldConfig": {"defaults": {"custom": {"drawStyle": "candles"}}}},
        {"fieldConfig": {"defaults": {"custom": {"cellOptions": {"type": "sparkline"}}}}},
        {"fieldConfig": {"defaults": {"custom": {"axisGridShow": True}}}},
        {"fieldConfig": {"defaults": {"mappings": [{"type": "regex", "options": {"pattern": "a", "result": {}}}]}}},
        {"fieldConfig": {"defaults": {"links": [{"title": "a", "url": "/d/a?x=${__org.id}"}]}}},
        {"fieldConfig": {"defaults": {"links": [{"title": "a", "url": "/d/a?x=${app:lucene}"}]}}},
        {"fieldConfig": {"defaults": {"thresholds": {"mode": "percentage", "steps": []}}}},
        {
            "fieldConfig": {
                "defaults": {"thresholds": {"mode": "absolute", "steps": [{"value": None, "color": "pink"}]}}
            }
        },
        {"fieldConfig": {"overrides": [{"matcher": {"id": "byFrameRefID", "options": "A"}, "properties": []}]}},
        {
            "fieldConfig": {
                "overrides": [
                    {"matcher": {"id": "byName", "options": "v"}, "properties": [{"id": "custom.nope", "value": 1}]}
                ]
            }
        },
    ],
)
def test_what_it_cannot_draw_is_found(changes: dict[str, Any]) -> None:
    assert list(faults(_change(deepcopy(gallery()), **changes)))


def test_other_variables_and_annotations_are_found() -> None:
    document = gallery()
    document["templating"]["list"][2]["type"] = "interval"
    document["annotations"]["list"][0]["datasource"] = {"type": "loki", "uid": "x"}
    assert len(list(faults(document))) == 2
