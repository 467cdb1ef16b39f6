"""The classification dashboard: the evaluator's own counts, rolled up, against counts of the reference."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from ragtide.dashboards.build import build
from ragtide.drift.settings import RuleOverride, RuleSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.registry import load
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.trace import Labels
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.dashboards.lint import faults, linked_columns, panels, queries
from tests.dashboards.macros import Choice, expanded
from tests.drift.world import World, score_row
from tests.evaluators.builtin.scoring import outcomes, trace
from tests.infra.fresh_database import fresh_database

CHOSEN: dict[str, Choice] = {
    "run": "live", "app": "shop", "environment": ["$__all"], "model": ["$__all"], "resolution": "0"
}  # fmt: skip
# The example of the detailed precision-recall curve, and its counts at some thresholds.
SCORED = [
    ("cat", {"cat": 0.91, "dog": 0.09}),
    ("dog", {"cat": 0.55, "dog": 0.45}),
    ("dog", {"cat": 0.2, "dog": 0.8}),
    ("bird", {"cat": 0.3, "dog": 0.65, "bird": 0.05}),
]
COUNTS = {  # tp, fp, fn: misclassification, fn: no prediction, tn
    ("bird", 0.05): (1, 0, 0, 0, 3),
    ("bird", 0.1): (0, 0, 1, 0, 3),
    ("bird", 0.65): (0, 0, 1, 0, 3),
    ("bird", 0.7): (0, 0, 0, 1, 3),
    ("cat", 0.05): (1, 3, 0, 0, 0),
    ("cat", 0.55): (1, 1, 0, 0, 2),
    ("cat", 0.6): (1, 0, 0, 0, 3),
    ("cat", 0.95): (0, 0, 0, 1, 3),
    ("dog", 0.05): (2, 2, 0, 0, 0),
    ("dog", 0.45): (2, 1, 0, 0, 1),
    ("dog", 0.5): (1, 1, 1, 0, 1),
    ("dog", 0.6): (1, 1, 0, 1, 1),
    ("dog", 0.85): (0, 0, 0, 2, 2),
}
Ask = Callable[[str], list[dict[str, Any]]]


def built(name: str = "classification", **how: Any) -> dict[str, Any]:
    return build(load(), **how)[name]


def stored(world: World, records: list[dict[str, Any]]) -> None:
    """One record every 30 s, as the evaluator scores it."""
    given = outcomes("classification", [trace(**fields) for fields in records])
    scored = [said for said in given if isinstance(said, Scored)]
    assert len(scored) == len(records)
    rows = [
        score_row(
            world.at(30 * i),
            f"t{i}",
            said.metrics,
            evaluator="classification",
            parts=said.parts,
            categories=said.categories,
            prompt_version=f"p{i // 3}",
        )
        for i, said in enumerate(scored)
    ]
    world.store(rows)


@pytest.fixture(scope="module")
def ask(clickhouse_server: EmbeddedClickHouse) -> Iterator[Ask]:
    """The rows of a query, over the scored example and three answers that are labels."""
    with fresh_database(clickhouse_server) as database:
        world = World(database, evaluators=load())
        answered = [("cat", "cat"), ("cat", "Dog."), ("dog", "some secret")]
        more = [{"answer": said, "expected": (true,), "task": "classification"} for true, said in answered]
        stored(world, [{"labels": Labels(true, scores=scores)} for true, scores in SCORED] + more)
        world.advance(3600)
        made = build(load(), database=database.name, evaluators=EvaluatorSettings(enabled=("classification",)))
        asked = {where: sql for name in ("application", "classification") for where, sql in queries(made[name])}

        def rows(where: str) -> list[dict[str, Any]]:
            return database.rows(expanded(asked[where], world.at(-60), world.at(3600), 60, CHOSEN))

        yield rows


@pytest.mark.clickhouse
def test_every_query_gives_something(ask: Ask) -> None:
    names = [where for where, _ in queries(built())]
    assert len(names) > 12
    for where in names:
        if "not scored, why" not in where:  # all were
            assert ask(where), where


@pytest.mark.clickhouse
def test_counts_at_each_threshold_are_the_references(ask: Ask) -> None:
    found = {(row["class"], round(row["threshold"], 2)): row for row in ask("table Precision and recall in detail A")}
    assert len(found) == 3 * 19
    keys = ("tp", "fp: misclassification", "fn: misclassification", "fn: no prediction", "tn")
    assert {key: tuple(found[key][name] for name in keys) for key in COUNTS} == COUNTS
    assert (found["dog", 0.1]["precision"], found["dog", 0.1]["recall"]) == (pytest.approx(2 / 3), 1.0)
    assert found["bird", 0.1]["precision"] is None  # nothing was predicted


@pytest.mark.clickhouse
def test_the_area_under_the_curve_shown_is_the_metric(ask: Ask) -> None:
    rates = ("false positive rate", "true positive rate")
    curves: dict[str, list[tuple[float, ...]]] = {}
    for row in ask("xychart ROC A"):
        curves.setdefault(row["class"], []).append(tuple(row[rate] for rate in rates))
    assert {(points[0], points[-1]) for points in curves.values()} == {((0.0, 0.0), (1.0, 1.0))}
    areas = {
        name: sum((x - x0) * (y + y0) / 2 for (x0, y0), (x, y) in pairwise(points)) for name, points in curves.items()
    }
    # scikit-learn's; the dog's of 0.45, 0.8 over 0.09, 0.65, the bird's of 0.05 over three without a score of it
    assert areas == pytest.approx({"bird": 1.0, "cat": 1.0, "dog": 0.75})
    shown = ask("xychart Precision and recall A")
    curve = [(row["recall"], row["precision"]) for row in shown if row["class"] == "cat"]
    assert curve[0] == (1.0, 1.0)
    assert curve[-1] == (1.0, 0.25)


@pytest.mark.clickhouse
def test_examples_are_ids_of_each_kind(ask: Ask) -> None:
    found = {(row["class"], round(row["threshold"], 2), row["kind"]): row["trace"] for row in ask("table Examples A")}
    assert found["dog", 0.5, "tp"] == "t2"
    assert found["dog", 0.5, "fp: misclassification"] == "t3"
    assert found["dog", 0.5, "fn: misclassification"] == "t1"
    assert found["dog", 0.6, "fn: no prediction"] == "t1"
    assert found["dog", 0.05, "tp"] == "t2"  # the newest, one at most
    assert ("dog", 0.5, "fn: no prediction") not in found
    assert all(row["trace_link"].startswith("/d/ragtide-trace?") for row in ask("table Examples A"))
    (table,) = [panel for panel in panels(built()) if panel["title"] == "Examples"]
    assert linked_columns(table) == {"trace": "${__data.fields.trace_link}"}


@pytest.mark.clickhouse
def test_the_confusion_matrix_names_hidden_answers_that_are_classes(ask: Ask) -> None:
    found = {(row["expected"], row["predicted"]): row["records"] for row in ask("table Confusion A")}
    unknown = next(predicted for _, predicted in found if predicted.startswith("#"))
    assert found == {
        ("cat", "cat"): 2,  # scored, and answered
        ("cat", "dog"): 1,  # answered
        ("dog", "cat"): 1,
        ("dog", "dog"): 1,
        ("dog", unknown): 1,
        ("bird", "dog"): 1,
    }


@pytest.mark.clickhouse
def test_a_point_is_the_number_of_one_window(ask: Ask) -> None:
    found = {(row["time"], row["series"]): row["accuracy"] for row in ask("timeseries classification.accuracy A")}
    values = [value for _, value in sorted(found.items(), key=lambda item: item[0])]
    # Two records a minute, three a prompt version: right, wrong | right || wrong | right, wrong || wrong
    assert values == [0.5, 1.0, 0.0, 0.5, 0.0]
    assert {series for _, series in found} == {"prod m1 p0", "prod m1 p1", "prod m1 p2"}


@pytest.mark.clickhouse
def test_classes_over_a_range_have_the_share_of_the_whole_range(ask: Ask) -> None:
    found = {row["class"]: row for row in ask("table classification: by class A")}
    assert (found["cat"]["class_recall"], found["cat"]["of class_recall"]) == (pytest.approx(2 / 3), 3)
    assert (found["dog"]["class_recall"], found["dog"]["of class_recall"]) == (pytest.approx(1 / 3), 3)
    assert (found["bird"]["class_recall"], found["bird"]["class_precision"]) == (0.0, None)
    (quality,) = [row for row in ask("table Quality A") if row["metric"] == "classification.accuracy"]
    assert (quality["mean"], quality["scored"], quality["state"]) == (pytest.approx(3 / 7), 7, "bad")
    assert quality["bad records"] == pytest.approx(4 / 7)


@pytest.mark.clickhouse
def test_outcomes_are_counted_over_time(ask: Ask) -> None:
    total = {"correct": 0, "misclassification": 0, "no prediction": 0}
    for row in ask("timeseries Outcomes A"):
        total = {kind: total[kind] + row[kind] for kind in total}
    assert total == {"correct": 3, "misclassification": 4, "no prediction": 0}


def test_the_linter_has_nothing_to_say() -> None:
    assert list(faults(built())) == []


def test_thresholds_and_examples_are_those_of_the_settings() -> None:
    params = {"classification": {"curve_thresholds": (0.1, 0.5, 0.2), "curve_max_examples": 3}}
    asked = dict(queries(built(evaluators=EvaluatorSettings(params=params))))
    assert "ARRAY JOIN [10, 30, 50] AS threshold" in asked["table Precision and recall in detail A"]
    assert "1, 3)" in asked["table Examples A"]
    with pytest.raises(ConfigError, match="curve_thresholds"):
        built(evaluators=EvaluatorSettings(params={"classification": {"curve_thresholds": (0.5, 0.1, 0.1)}}))


def test_the_line_is_that_of_the_rules() -> None:
    rules = RuleSettings(overrides=(RuleOverride(metric="classification.accuracy", min=0.9),))
    shown = {panel["title"]: panel for panel in panels(built(rules=rules))}
    steps = shown["classification.accuracy"]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [(step["value"], step["color"]) for step in steps] == [(None, "red"), (0.9, "green")]


def test_without_the_evaluator_there_is_no_dashboard_of_it() -> None:
    without = {id_: each for id_, each in load().items() if id_ != "classification"}
    assert "classification" not in build(without)
