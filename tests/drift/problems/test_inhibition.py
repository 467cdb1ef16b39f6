"""Which problems are told together, and which not while another one explains them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragtide.drift.problems.inhibition import group_key, inhibits
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.store import fold_events
from tests.dashboards.sample_rows import event

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def problem(id_: str = "p", **where: Any) -> Problem:
    (found,) = fold_events([event(id_, f"{id_}1", "opened", 1, NOON, **{"metric": "quality.good", **where})])
    return found


LEVEL = {"aspect": "level"}
COVERAGE = {"aspect": "coverage"}
ACME = {"aspect": "level", "segment": "tenant", "segment_value": "acme"}


@pytest.mark.parametrize(
    ("cause", "other", "expected"),
    [
        ({"aspect": "missing", "metric": "", "model": ""}, COVERAGE, True),
        ({"aspect": "missing", "metric": "", "model": ""}, {"aspect": "inputs"}, True),
        ({"aspect": "missing", "metric": "", "model": ""}, LEVEL, False),
        ({"aspect": "missing", "metric": "", "model": "", "app": "other"}, COVERAGE, False),
        ({"aspect": "missing", "metric": "", "model": "", "environment": "other"}, COVERAGE, False),
        (COVERAGE, LEVEL, True),
        (COVERAGE, {"aspect": "level", "metric": "quality.other"}, True),  # of the same evaluator
        (COVERAGE, {"aspect": "level", "segment": "tenant", "segment_value": "acme"}, True),
        (COVERAGE, {"aspect": "level", "metric": "leak.passes"}, False),
        (COVERAGE, {"aspect": "level", "model": "m2"}, False),
        ({"aspect": "error", "model": ""}, {"aspect": "coverage", "model": "m2"}, True),
        ({"aspect": "error"}, {"aspect": "flip"}, True),
        (LEVEL, COVERAGE, False),
        (LEVEL, ACME, True),
        (LEVEL, {**ACME, "severity": "info"}, True),
        (LEVEL, {**ACME, "severity": "critical"}, False),  # worse than the whole
        (LEVEL, {**ACME, "metric": "quality.other"}, False),
        (LEVEL, {**ACME, "model": "m2"}, False),
        (LEVEL, {"aspect": "level", "segment": "objective", "segment_value": "in-time"}, False),
        (ACME, {**ACME, "segment_value": "other"}, False),  # one segment does not explain another
        (COVERAGE, {**ACME, "aspect": "coverage"}, True),
        ({"aspect": "flip"}, {"aspect": "flip", "segment": "typos", "segment_value": "1"}, False),
        (COVERAGE, {"aspect": "storage"}, False),
    ],
)
def test_what_explains_what(cause: dict[str, str], other: dict[str, str], expected: bool) -> None:
    assert inhibits(problem("a", **cause), problem("b", **other)) is expected


@pytest.mark.parametrize(
    ("minutes", "value", "expected"), [(60, 0.4, True), (-60, 0.4, True), (61, 0.4, False), (0, 0.9, False)]
)
def test_the_same_move_of_a_segment_began_within_an_hour_and_goes_the_same_way(
    minutes: int, value: float, expected: bool
) -> None:
    def moved(to: float, after: int) -> str:
        since = (NOON + timedelta(minutes=after)).isoformat()
        return json.dumps({"value": to, "baseline": 0.8, "since": since})

    whole, part = (
        problem("a", **LEVEL, attributes=moved(0.5, 0)),
        problem("b", **ACME, attributes=moved(value, minutes)),
    )
    assert inhibits(whole, part) is expected
    assert not inhibits(part, whole)


def test_a_group_is_of_an_application_a_model_and_a_type() -> None:
    assert group_key(problem(app="shop", environment="prod")) == "shop/prod/m1/accuracy"
