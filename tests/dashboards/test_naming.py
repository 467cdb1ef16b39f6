"""Every name and selector of the dashboards can be changed in one section of the settings."""

import json
from datetime import timedelta
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from ragtide.dashboards.alerting.build import AlertingContext, alerting
from ragtide.dashboards.alerting.files import provisioning
from ragtide.dashboards.build import build
from ragtide.dashboards.settings import DashboardSettings
from ragtide.evaluators.registry import load
from ragtide.stream.settings.loader import load as load_settings
from tests.dashboards.lint import faults, queries
from tests.dashboards.macros import expanded
from tests.dashboards.sample_rows import NOON

CHANGED = DashboardSettings(
    uid_prefix="team-",
    title_prefix="Team A: ",
    tags=("ours", "rag"),
    data_source_uid="ch-7",
    data_source_name="ClickHouse 7",
    refresh="30s",
    time_range="2h",
    time_zone="utc",
    leave_out=("objects",),
    selected={"run": "nightly", "environment": "pre, prod"},
    fixed={"app": "docs bot, eu"},
)


def variables(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in document["templating"]["list"]}


@pytest.fixture(scope="module")
def changed() -> dict[str, Any]:
    return build(load(), names=CHANGED)


def test_nothing_keeps_its_own_name(changed: dict[str, Any]) -> None:
    assert set(changed) == set(build(load())) - {"objects"}
    for name, document in changed.items():
        assert document["uid"] == f"team-{name}"
        assert document["title"].startswith("Team A: ")
        assert (document["tags"], document["refresh"], document["timezone"]) == (["ours", "rag"], "30s", "utc")
        assert document["time"] == {"from": "now-2h", "to": "now"}
        assert {tuple(link["tags"]) for link in document["links"] if link["type"] == "dashboards"} == {("ours",)}
        if name != "runbooks":  # it asks for nothing
            assert variables(document)["datasource"]["current"]["value"] == "ch-7"
        written = json.dumps(document)
        assert "/d/ragtide-" not in written
        assert "ragtide-clickhouse" not in written
        assert list(faults(document)) == []


def test_links_between_dashboards_follow_the_prefix(changed: dict[str, Any]) -> None:
    assert "/d/team-trace" in json.dumps(changed["application"])  # an example's link, which SQL writes
    assert "/d/team-problems?" in json.dumps(changed["trace"])


def test_a_fixed_variable_has_one_value_hidden_and_closed_to_the_address(changed: dict[str, Any]) -> None:
    app = variables(changed["application"])["app"]
    assert (app["type"], app["hide"], app["skipUrlSync"]) == ("custom", 2, True)
    assert (app["current"]["value"], app["query"]) == ("docs bot, eu", "docs bot\\, eu")
    several = variables(changed["problems"])["app"]
    assert several["current"]["value"] == ["docs%20bot%2C%20eu"]  # as such a variable encodes its values
    chosen = variables(changed["application"])
    assert chosen["run"]["current"]["value"] == "nightly"
    assert chosen["environment"]["current"]["value"] == ["pre%2C%20prod"]
    for document in changed.values():
        values = {name: each["current"]["value"] for name, each in variables(document).items() if "current" in each}
        for where, sql in queries(document):
            expanded(sql, NOON, NOON + timedelta(hours=1), 60, {**values, "model": ["$__all"], "standard": ["$__all"],
                                                                "metric": "m", "segment": "s"})  # fmt: skip
            assert where


def test_alert_rules_follow_too() -> None:
    made = alerting(load(), AlertingContext(names=CHANGED))
    own, problems = yaml.safe_load(provisioning(made))["groups"]
    assert (own["name"], own["folder"]) == ("team", "ragtide alerts (team-)")
    assert (problems["name"], made.folder_uid) == ("team-problems", f"{CHANGED.folder_uid}-alerts-team-")
    found = [*own["rules"], *problems["rules"]]
    assert {"team-jobs-stopped", "team-outbox-waits", "team-problems"} < {rule["uid"] for rule in found}
    assert {query["datasourceUid"] for rule in found for query in rule["data"]} == {"ch-7", "__expr__"}


def test_the_section_is_read_from_file_and_environment() -> None:
    environment = {"RAGTIDE_DASHBOARDS__LEAVE_OUT": "objects,models", "RAGTIDE_DASHBOARDS__FIXED__APP": "docs-bot"}
    found = load_settings(None, environment).settings.dashboards
    assert (found.leave_out, found.fixed) == (("objects", "models"), {"app": "docs-bot"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"uid_prefix": "a b"},
        {"tags": []},
        {"folder_uid": "über"},
        {"refresh": "often"},
        {"time_range": "now-6h"},
        {"leave_out": ["nothing"]},
        {"fixed": {"metric": "m"}},
        {"selected": {"app": ""}},
    ],
    ids=str,
)
def test_what_grafana_would_not_take_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DashboardSettings(**wrong)
