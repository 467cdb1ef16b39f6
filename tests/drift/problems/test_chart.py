"""What a problem's chart draws is what was judged, read of windows on the real engine."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ragtide.drift.detectors.arrays import level_bin, level_values
from ragtide.drift.problems.chart import chart_points, chart_series
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.store import fold_events
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.dashboards.sample_rows import event
from tests.drift.anomalies.window_fixture import BASE, EVALUATORS, START, WindowFixture, window
from tests.infra.fresh_database import fresh_database

METRICS = metrics_by_name(EVALUATORS)
SCORES = [[0.6, 0.8, 0.8, 1.0], [0.2, 0.4, 0.4, 0.6]]  # scatter about the mean: 0.08 of 3 degrees of freedom
SECONDS = [[1.0, 1.0, 1.0, 9.0], [1.0, 9.0, 9.0, 9.0]]
PASSES = [[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
LANGUAGES = [{"en": 90, "de": 8, "fr": 2}, {"en": 50, "de": 48, "fr": 2}]
AT = {"app": "shop", "environment": "prod", "model": "m1"}
EDGE = float(level_values(np.array(level_bin(2.0))))


@pytest.fixture(scope="module")
def database(clickhouse_server: EmbeddedClickHouse) -> Iterator[Database]:
    with fresh_database(clickhouse_server) as found:
        rows = [
            window(metric, START + nth * BASE, records, version=0)
            for metric, both in (("quality.good", SCORES), ("speed.seconds", SECONDS), ("checked.passes", PASSES))
            for nth, records in enumerate(map(np.array, both))
        ]
        rows += [
            window("inputs.question_language", START + nth * BASE, counts, version=0)
            for nth, counts in enumerate(LANGUAGES)
        ]
        WindowFixture(found).store(rows)
        yield found


def problem(metric: str, said: Mapping[str, Any], aspect: str = "level", **where: str) -> Problem:
    at = datetime.fromtimestamp(START + BASE, UTC)
    spoken = event("p", "p1", "opened", 1, at, metric=metric, aspect=aspect, **AT, **where)
    (found,) = fold_events([spoken._replace(attributes=json.dumps(said))])
    return found


def detector_attributes(kind: str, channel: str, **more: float) -> dict[str, Any]:
    return {"detector": kind, "channel": channel, "baseline": 0.1, **more}


@pytest.mark.parametrize(
    ("metric", "said", "aspect", "name", "values", "line"),
    [
        ("quality.good", detector_attributes("score", "mean"), "level", "mean", (0.8, 0.4), ("usual", 0.1)),
        ("quality.good", detector_attributes("score", "spread"),
         "level", "standard deviation", (0.163,) * 2, ("usual", 0.1)),
        ("checked.passes", detector_attributes("rate", "rate"),
         "level", "share that failed", (0.25, 0.75), ("usual", 0.1)),
        ("speed.seconds", detector_attributes("positive", "median", level=EDGE),
         "level", f"share above {EDGE:.3g}", (0.25, 0.75),
         ("usual", 0.1)),
        ("inputs.question_language", detector_attributes("category", "de"),
         "inputs", "share of de", (0.08, 0.48), ("usual", 0.1)),
        ("quality.good", {"rule": "mean", "threshold": 0.75}, "level", "mean", (0.8, 0.4), ("threshold", 0.75)),
        ("checked.passes", {"rule": "any", "min": 0.5, "max": None}, "level", "share that failed", (0.25, 0.75), None),
        ("quality.good", {"causes": {}, "min": 0.7, "max": None, "limit": 0.3}, "level", "share that failed",
         (0.25, 1.0), ("limit", 0.3)),
        ("quality.good", {"level": 0.8, "baseline": 0.7}, "level", "share above 0.8", (0.75, 0.0), ("usual", 0.7)),
        ("speed.seconds", {"level": EDGE, "baseline": 0.7}, "level", f"share above {EDGE:.3g}", (0.25, 0.75),
         ("usual", 0.7)),
    ],
)  # fmt: skip
def test_the_figure_that_was_judged_is_drawn(
    database: Database,
    metric: str,
    said: Mapping[str, Any],
    aspect: str,
    name: str,
    values: tuple[float, float],
    line: tuple[str, float] | None,
) -> None:
    found = problem(metric, said, aspect)
    figure = chart_series(found, METRICS.get(metric))
    assert figure is not None
    assert (figure.name, figure.line) == (name, line)
    points = chart_points(database, found, figure, BASE)
    assert [point.value for point in points] == pytest.approx(values, rel=1e-2)
    assert [point.start for point in points] == [
        datetime.fromtimestamp(START, UTC) + nth * timedelta(seconds=BASE) for nth in range(2)
    ]


def test_an_objective_is_drawn_of_the_whole_and_a_coverage_by_what_has_no_score(database: Database) -> None:
    said = {"objective": "fast", "min": None, "max": 5.0, "limit": 0.01}
    burns = problem("speed.seconds", said, segment="objective", segment_value="fast")
    figure = chart_series(burns, METRICS["speed.seconds"])
    assert figure is not None
    assert [point.value for point in chart_points(database, burns, figure, BASE)] == [0.25, 0.75]
    uncovered = problem("speed.seconds", {"rule": "coverage", "limit": 0.1}, "coverage")
    figure = chart_series(uncovered, None)
    assert figure is not None
    assert (figure.name, figure.line) == ("share without a score", ("limit", 0.1))
    assert [point.value for point in chart_points(database, uncovered, figure, BASE)] == [0.0, 0.0]  # nothing failed


@pytest.mark.parametrize(
    ("metric", "said", "aspect"),
    [
        ("inputs.question_language", detector_attributes("category", "other labels"), "inputs"),
        ("quality.good", {"value": 0.4, "limit": 0.1}, "flip"),
        ("quality.good", {"value": 0.4}, "finding"),
        ("inputs.question_meaning", {"channel": "meaning"}, "inputs"),
    ],
)
def test_what_windows_cannot_tell_is_not_drawn(metric: str, said: Mapping[str, Any], aspect: str) -> None:
    assert chart_series(problem(metric, said, aspect), METRICS.get(metric)) is None
