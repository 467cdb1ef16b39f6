"""Quality by metric and its problems, against figures added up by hand."""

from datetime import timedelta
from typing import Any

import pytest

from ragtide.dashboards.build import build
from ragtide.drift.leadership import elect
from ragtide.drift.problems.group_store import record_groups
from ragtide.evaluators.registry import load
from tests.dashboards.lint import panels
from tests.dashboards.macros import Choice
from tests.dashboards.sample_rows import APP, NOON, event, window
from tests.dashboards.shown_application import Shown

pytestmark = pytest.mark.clickhouse


def test_the_quality_table_puts_bad_metrics_first(shown: Shown) -> None:
    found = {row["metric"]: row for row in shown.rows("table Quality A")}
    watched = {
        f"{evaluator.id}.{metric.key}"
        for evaluator in load().values()
        for metric in evaluator.metrics
        if metric.primary and metric.threshold is not None
    }
    assert set(found) == watched
    row = found["groundedness.groundedness"]
    assert (row["state"], row["limit of mean"], row["scored"]) == ("problem", 0.75, 30)  # one is open
    assert row["limit of bad records"] is None
    assert row["mean"] == pytest.approx(2 / 3)
    assert row["of applicable"] == pytest.approx(30 / 70)  # 2 + 1 scored of 4 + 3 a minute
    assert row["of all"] == pytest.approx(30 / 230)
    assert found["operations.error"]["state"] == "bad"  # 0.67 where 0.05 is the most
    assert row["bad records"] == pytest.approx(1 / 3)  # 0.25 of 0.25, 0.75 and 1.0
    assert found["operations.error"]["bad records"] == 1.0  # 0.25, 0.75 and 1.0 where 0.05 is the most
    leak = found["pii_leakage.passes"]
    assert (leak["limit of mean"], leak["limit of bad records"]) == (None, 0.0)  # its records are judged, not its mean
    states = [row["state"] for row in shown.rows("table Quality A")]
    assert states == sorted(states, key=["problem", "bad", "good", "no data"].index)


def test_problems_of_the_system_stand_beside_those_of_every_application(own: Shown) -> None:
    """Disks, jobs and dead letters belong to no application."""
    disk = event("disk", "x1", "opened", 1, NOON, app="", environment="", aspect="storage", metric="disk")
    own.database.insert("problem_events", [disk])
    choices: list[dict[str, Choice]] = [{"app": APP}, {"app": "another", "environment": ["nowhere"]}]
    for chosen in choices:
        assert "disk" in [row["problem_id"] for row in own.rows("table Open problems A", chosen)]
    assert own.row("stat Open problems A") == {"problems": 2}


def test_symptoms_are_counted_with_the_problem_that_explains_them(own: Shown) -> None:
    at = NOON + timedelta(minutes=1)
    chunks: dict[str, Any] = {
        "app": "grouped",
        "metric": "context_relevancy_soft.recall_relevancy",
        "type": "retrieval",
    }
    answers = [event(f"answers{n}", f"a{n}", "opened", 1, at, app="grouped", metric=f"m{n}.score") for n in range(2)]
    own.database.insert("problem_events", [event("chunks", "c1", "opened", 1, NOON, **chunks), *answers])
    record_groups(own.database, at, elect(own.database, "jobs"))
    chosen: dict[str, Choice] = {"app": "grouped"}
    (row,) = own.rows("table Open problems A", chosen)
    assert (row["problem_id"], row["symptoms"]) == ("chunks", 2)
    assert own.row("stat Open problems A", chosen) == {"problems": 1}
    ends = NOON + timedelta(minutes=9)
    own.database.insert("problem_events", [event("chunks", "c2", "resolved", 1, ends, **chunks)])
    assert own.row("stat Open problems A", chosen) == {"problems": 0}, "its symptoms are expected to end, too"
    record_groups(own.database, ends + timedelta(hours=1), elect(own.database, "jobs"))
    assert own.row("stat Open problems A", chosen) == {"problems": 1}, (
        "of the two that are left, one explains the other"
    )


def test_a_finding_is_a_problem_of_its_evaluators_metrics(own: Shown) -> None:
    """Its metric is the evaluator's id."""
    found = event("key", "k1", "opened", 1, NOON, app="safe", aspect="finding", metric="sensitive_data_leakage")
    own.database.insert("problem_events", [found])
    metrics = ("sensitive_data_leakage.passes", "pii_leakage.passes")
    own.database.insert("windows", [window(metric, NOON, [1.0] * 20, app="safe") for metric in metrics])
    states = {row["metric"]: row["state"] for row in own.rows("table Quality A", {"app": "safe"})}
    assert states == {"sensitive_data_leakage.passes": "problem", "pii_leakage.passes": "good"}


def test_rules_of_records_are_drawn_on_their_share_of_bad_records(own: Shown) -> None:
    """One leak of a thousand records is over the limit, where the mean of 0.999 is far from 0.5."""
    own.database.insert("windows", [window("pii_leakage.passes", NOON, [1.0] * 999 + [0.0], app="leaky")])
    title = "pii_leakage.passes: share of bad records"
    assert own.rows(f"timeseries {title} A", {"app": "leaky"}) == [{"time": NOON, "bad records": 0.001}]
    shown = {panel["title"]: panel for panel in panels(build(load())["application"])}
    steps = shown[title]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [(step["value"], step["color"]) for step in steps] == [(None, "green"), (0.0, "red")]
    mean = shown["pii_leakage.passes"]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [step["value"] for step in mean] == [None]


def test_a_mean_on_its_threshold_is_good(own: Shown) -> None:
    exact = [window("groundedness.groundedness", NOON, [0.5, 1.0], app="exact")]
    exact += [window("operations.error", NOON, [0.0] * 19 + [1.0], app="exact")]
    own.database.insert("windows", exact)
    found = {row["metric"]: row["state"] for row in own.rows("table Quality A", {"app": "exact"})}
    assert found == {"groundedness.groundedness": "good", "operations.error": "good"}


RULED: list[tuple[str, list[float], float, str]] = [
    ("pii_leakage.passes", [1.0] * 999 + [0.0], 0.001, "bad"),  # any: one leak, though the mean is 0.999
    ("pii_leakage.passes", [1.0] * 20, 0.0, "good"),
    ("text_matching.passes", [1.0] * 19 + [0.0], 0.05, "good"),  # share: at most 0.05
    ("text_matching.passes", [1.0] * 18 + [0.0] * 2, 0.1, "bad"),
    ("groundedness.groundedness", [0.74, 0.75, 0.76], 1 / 3, "good"),  # mean: 0.75 where 0.75 is the least
    ("operations.error", [0.0] * 9 + [1.0], 0.1, "bad"),  # mean: 0.1 where 0.05 is the most
]


def test_quality_is_judged_by_the_metrics_own_rule(own: Shown) -> None:
    windows = [window(metric, NOON, values, app=f"a{i}") for i, (metric, values, _, _) in enumerate(RULED)]
    own.database.insert("windows", windows)
    for i, (metric, _, bad, state) in enumerate(RULED):
        row = own.row("table Quality A", {"app": f"a{i}"})
        assert (row["metric"], row["state"]) == (metric, state)
        assert row["bad records"] == pytest.approx(bad)
