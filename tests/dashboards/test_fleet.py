"""The fleet: applications, their health and their owners, against figures worked by hand."""

from datetime import timedelta

import pytest

from ragtide.dashboards.build import build
from ragtide.drift.problems.group_store import GroupRow
from ragtide.drift.windows.window_metrics import WindowRow
from ragtide.evaluators.registry import load
from tests.dashboards.lint import queries, shown_number
from tests.dashboards.macros import expanded
from tests.dashboards.sample_rows import NOON, event, window
from tests.dashboards.shown_application import ALL, END, Shown

pytestmark = pytest.mark.clickhouse
APPLICATIONS, HEALTH, OWNERS = "table Applications A", "state-timeline Health A", "table Open problems by owner A"


def number(shown: Shown, title: str) -> object:
    (row,) = shown.rows(f"stat {title} A", board="fleet")
    return shown_number(shown.documents["fleet"], f"stat {title} A", row)


def by_name(shown: Shown, **chosen: list[str]) -> dict[tuple[str, str], dict[str, object]]:
    return {(row["app"], row["environment"]): row for row in shown.rows(APPLICATIONS, chosen, board="fleet")}


def of_app(app: str, values: dict[str, list[float]], **other: object) -> list[WindowRow]:
    return [window(metric, NOON, found, app=app, **other) for metric, found in values.items()]


def test_the_worst_application_comes_first(shown: Shown) -> None:
    rows = shown.rows(APPLICATIONS, board="fleet")
    assert [(row["state"], row["app"], row["environment"]) for row in rows] == [
        ("critical", "helpdesk", "prod"),
        ("warning", "another", "prod"),
        ("healthy", "helpdesk", "staging"),
    ]
    first = rows[0]
    assert (first["critical"], first["warning"], first["info"]) == (1, 0, 0)
    assert first["last problem"] == NOON + timedelta(minutes=5)
    assert first["owner"] == "search-team"
    # per minute 12 traces (2 scored and 10 more), for ten minutes; errors 0.25 and 0.75; a dollar a minute
    assert (first["traces"], first["traces per minute"], first["errors"]) == (120, 12.0, 0.5)
    assert first["cost per hour"] == pytest.approx(60.0)
    assert first["latency p95"] == pytest.approx(0.75, rel=0.0051)
    assert rows[2]["coverage"] == pytest.approx(1 / 3)  # 1 scored of 3 applicable
    assert first["link"] == "/d/ragtide-application?var-app=helpdesk&var-environment=prod"


def test_figures_of_one_application(own: Shown) -> None:
    """Two of its three metrics keep their limits, and 1 of 20 records is bad where half of them may be."""
    values = {
        "operations.error": [0.0] * 19 + [1.0],  # a mean of 0.05, where 0.05 is the most
        "groundedness.groundedness": [0.5, 1.0],  # 0.75, where 0.75 is the least
        "text_matching.passes": [1.0] * 18 + [0.0] * 2,  # a share of 0.1, where 0.05 is the most
    }
    own.database.insert("windows", of_app("small", values))
    row = by_name(own)["small", "prod"]
    assert (row["within limits"], row["metrics"]) == (pytest.approx(2 / 3), 3)
    assert row["coverage"] == pytest.approx(42 / 48)  # 20 + 2 + 20 scored, of 2 more each
    assert row["budget left"] == pytest.approx(1 - (1 / 20) / 0.5)
    assert (row["state"], row["traces"], row["owner"]) == ("healthy", 30, "no owner")


def test_an_objective_of_an_application_replaces_that_of_all(own: Shown) -> None:
    own.database.insert("windows", of_app("another", {"operations.error": [1.0]}, environment="x"))
    assert by_name(own)["another", "x"]["budget left"] == pytest.approx(1 - 1 / 0.1)  # not 1 - 1 / 0.5
    assert number(own, "Lowest error budget left") == pytest.approx(-9.0)


def test_a_budget_covers_its_period_whatever_the_time_range(own: Shown) -> None:
    """Of 28 days: 19 good records 27 days ago count, bad ones 29 days ago do not."""
    error = "operations.error"
    old = [
        window(error, NOON - timedelta(days=days), values, app="steady")
        for days, values in ((27, [0.0] * 19), (29, [1.0] * 99))
    ]
    own.database.insert("windows", [*old, window(error, NOON, [1.0], app="steady")])
    assert by_name(own)["steady", "prod"]["budget left"] == pytest.approx(1 - (1 / 20) / 0.5)


def test_applications_without_traffic_stay_for_a_week(own: Shown) -> None:
    midnight = NOON.replace(hour=0)
    for days, app in ((2, "silent"), (9, "forgotten")):
        start = midnight - timedelta(days=days)
        own.database.insert("windows", [window("operations.error", start, [0.0], app=app, size_s=86400)])
    own.database.insert("problem_events", [event("z", "z1", "opened", 1, NOON, app="", environment="", metric="disk")])
    found = {app: row["state"] for (app, _), row in by_name(own).items()}
    assert found == {"helpdesk": "healthy", "another": "warning", "silent": "no traffic", "": "warning"}
    assert by_name(own)["", ""]["link"] == "/d/ragtide-pipeline?"
    assert by_name(own, environment=["staging"]).keys() == {("helpdesk", "staging"), ("", "")}


def test_numbers_on_top(shown: Shown) -> None:
    assert number(shown, "Applications in trouble") == 1
    assert [number(shown, f"Open, {severity}") for severity in ("critical", "warning", "info")] == [1, 1, 0]
    # helpdesk 120 + 110, another 1,010 in one window, over ten minutes
    assert number(shown, "Traces per minute") == pytest.approx((120 + 110 + 1010) / 10)
    assert number(shown, "Cost per hour") == pytest.approx((10 + 10) * 6)


def test_no_objective_is_no_budget(shown: Shown) -> None:
    asked = dict(queries(build(load(), database=shown.database.name)["fleet"]))
    sql = expanded(asked["stat Lowest error budget left A"], NOON, END, 60, ALL)
    assert shown.database.rows(sql) == []


def test_health_over_time_is_that_of_the_worst_open_problem(shown: Shown) -> None:
    """Of helpdesk in prod: info for two minutes, then healthy, then critical; it had traffic in all ten minutes.

    Windows of the eleventh minute are not closed: without a problem nothing is known.
    """
    found: dict[str, list[int]] = {}
    for row in shown.rows(HEALTH, board="fleet"):
        found.setdefault(row["application"], []).append(row["health"])
    assert found["helpdesk prod"][:10] == [2, 2, 2, 1, 1, 4, 4, 4, 4, 4]
    assert found["helpdesk staging"] == [1, 3, 3, 3, 1, 1, 1, 1, 1, 1]
    assert found["another prod"] == [3] * 11


def test_a_symptom_of_a_resolved_problem_troubles_no_application(own: Shown) -> None:
    """Numbers, table and timeline say the same."""
    own.database.insert("windows", of_app("well", {"operations.error": [0.0]}))
    told = {"app": "well", "severity": "critical"}
    events = [("cause", "opened", 0), ("symptom", "opened", 0), ("cause", "resolved", 1)]
    own.database.insert(
        "problem_events",
        [event(name, f"{name} {step}", step, 1, NOON + timedelta(minutes=at), **told) for name, step, at in events],
    )
    own.database.insert("problem_groups", [GroupRow("symptom", 1, "cause", 1, 1)])
    assert number(own, "Applications in trouble") == 1  # helpdesk
    assert by_name(own)["well", "prod"]["state"] == "healthy"
    health = [row["health"] for row in own.rows(HEALTH, board="fleet") if row["application"] == "well prod"]
    assert health == [4, 4] + [0] * 8  # its traffic was in the first minute


def test_problems_by_owner(shown: Shown) -> None:
    rows = shown.rows(OWNERS, board="fleet")
    assert [(row["owner"], row["critical"], row["warning"], row["not taken"]) for row in rows] == [
        ("search-team", 1, 0, 0),  # kim took it
        ("quality", 0, 1, 1),
    ]


def test_insights_of_every_application(shown: Shown) -> None:
    (row,) = shown.rows("table Insights A", board="fleet")
    assert (row["app"], row["description"], row["example trace"]) == ("helpdesk", "three questions fail", "t9")
