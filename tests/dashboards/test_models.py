"""Models compared, against figures worked by hand."""

import pytest

from ragtide.dashboards.build import build
from ragtide.drift.settings import RuleSettings
from ragtide.evaluators.registry import load
from tests.dashboards.lint import panels
from tests.dashboards.sample_details import METRIC
from tests.dashboards.sample_rows import NOON, window
from tests.dashboards.shown_application import Shown


def rows(shown: Shown, where: str) -> list[dict[str, object]]:
    return shown.rows(f"{where} A", board="models")


@pytest.mark.clickhouse
def test_the_leaderboard_says_whom_the_best_can_be_told_from(own: Shown) -> None:
    own.database.insert("windows", [window(METRIC, NOON, [1.0] * 4 + [0.0], model="m3")])
    found = rows(own, "table Leaderboard of the chosen metric")
    assert [(row["place"], row["model"], row["mean"], row["traces"], row["against the best"]) for row in found] == [
        (1, "m2", 1.0, 10, "best"),
        (2, "m3", 0.8, 5, "no clear difference"),
        (3, "m1", 0.5, 20, "worse"),
    ]
    assert found[2]["good traces"] == 0.5  # 0.75 is good, 0.25 is not
    assert found[2]["of applicable"] == pytest.approx(0.5)


@pytest.mark.clickhouse
def test_lower_is_better_where_the_metric_says_so(own: Shown) -> None:
    own.database.insert("windows", [window("toxicity.toxicity", NOON, [0.1] * 6, model="m3")])
    found = [row for row in rows(own, "table Leaderboard of fairness") if row["metric"] == "toxicity.toxicity"]
    assert [(row["place"], row["model"]) for row in found] == [(1, "m3"), (2, "m1"), (3, "m2")]


@pytest.mark.clickhouse
def test_models_at_a_glance(shown: Shown) -> None:
    first, second = rows(shown, "table Models at a glance")
    assert (first["model"], first["traces"], second["model"], second["traces"]) == ("m1", 120, "m2", 110)
    # Of fairness m1 has 0.25 and 0.75, m2 has 1.0. Bad are: above 0.75 (2 metrics), below 0.5 (2 that pass), above 0.25
    # (2 of opinions), below 0.99 (safe).
    assert first["fairness"] == pytest.approx((2 * 1.0 + 2 * 0.5 + 2 * 0.5 + 0.0) / 7)
    assert second["fairness"] == pytest.approx((2 * 0.0 + 2 * 1.0 + 2 * 0.0 + 1.0) / 7)
    assert first["privacy"] == pytest.approx(0.5)  # passes of 0.25 are bad
    assert (first["errors"], first["cost per trace"]) == (0.5, 0.5)
    assert first["latency p95"] == pytest.approx(0.75, rel=0.0051)


@pytest.mark.clickhouse
def test_the_heat_map_names_the_traces_of_a_model(shown: Shown) -> None:
    found = {
        (row["metric"], row["model_name"]): row["good"] for row in rows(shown, "table Good traces by metric and model")
    }
    assert found[METRIC, "m1 p1 (120 traces)"] == 0.5
    assert found["toxicity.toxicity", "m2 p1 (110 traces)"] == 0.0


@pytest.mark.clickhouse
def test_failures_are_split_by_cause(shown: Shown) -> None:
    """Of ten scored traces two pass. Contexts of four failing ones are bad, of two good, of two not known."""
    first, second = rows(shown, "table Passes and failures in numbers")
    assert first == {
        "model": "m1 p1", "pass": 2, "retrieval": 4, "generation": 2, "unknown": 2, "parse": 1, "traces": 11,
    }  # fmt: skip
    assert (second["model"], second["pass"], second["traces"]) == ("m2 p1", 1, 1)
    shares = rows(shown, "barchart Passes and failures by cause")[0]
    assert shares["retrieval"] == pytest.approx(4 / 11)
    of_contexts = shown.rows(
        "table Passes and failures in numbers A", {"metric": "context_mrr.reciprocal_rank"}, board="models"
    )
    assert [(row["pass"], row["retrieval"], row["traces"]) for row in of_contexts] == [(2, 4, 6)]


@pytest.mark.clickhouse
def test_quality_beside_cost_and_latency(shown: Shown) -> None:
    found = rows(shown, "xychart Quality over cost per trace")
    assert found == [
        {"model_name": "m1 p1", "cost per trace": 0.5, "good traces": 0.5},
        {"model_name": "m2 p1", "cost per trace": 1.0, "good traces": 1.0},
    ]
    (first, _) = rows(shown, "xychart Quality over latency")
    assert first["latency"] == pytest.approx(0.25, rel=0.0051)


@pytest.mark.clickhouse
def test_the_confusion_of_classes(shown: Shown) -> None:
    found = rows(shown, "table Confusion of the chosen models")
    assert found == [
        {"expected": "cat", "predicted": "cat", "records": 2.0},
        {"expected": "cat", "predicted": "dog", "records": 1.0},
    ]


def test_colours_are_those_of_the_severities_in_the_settings() -> None:
    rules = RuleSettings(severity_warning=0.1, severity_critical=0.4)
    shown = {panel["title"]: panel for panel in panels(build(load(), rules=rules)["models"])}
    overrides = shown["Good traces by metric and model"]["fieldConfig"]["overrides"]
    found = {each["id"]: each["value"] for override in overrides for each in override["properties"]}
    steps = [(step["value"], step["color"]) for step in found["thresholds"]["steps"]]
    assert steps == [(None, "red"), (0.6, "orange"), (0.9, "green")]


def test_without_the_classifier_there_is_no_confusion() -> None:
    without = build({id_: one for id_, one in load().items() if id_ != "classification"})["models"]
    assert not any("onfusion" in panel["title"] for panel in panels(without))


def test_a_new_evaluator_appears_without_an_edit() -> None:
    few = {id_: one for id_, one in load().items() if id_ in ("operations", "toxicity")}
    titles = [panel["title"] for panel in panels(build(few)["models"]) if panel["type"] == "row"]
    assert titles == ["All metrics", "The chosen metric", "Leaderboard: fairness", "Leaderboard: generation"]
