"""Alerts, the list of problems and the runbooks themselves link to panels of the dashboard of runbooks."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ragtide.dashboards.alerting import AlertingContext, alerting
from ragtide.dashboards.build import build
from ragtide.dashboards.runbook_links import runbook_panel_sql
from ragtide.dashboards.settings import DashboardSettings
from ragtide.drift.notify import alert_of
from ragtide.drift.notify.alert import alertname
from ragtide.drift.problems.kinds import KINDS
from ragtide.evaluators.registry import load
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import GrafanaSettings
from ragtide.stream.notification_targets import alert_context
from ragtide.stream.settings.loader import Settings
from tests.drift.notify.test_alert import problem

GRAFANA = GrafanaSettings(url="https://grafana.example.org/at/", org_id=3)
PANELS: dict[int, dict[str, Any]] = {panel["id"]: panel for panel in build(load())["runbooks"]["panels"]}


def linked(url: str, uid: str = "ragtide-runbooks") -> str:
    """The title of the panel that a link leads to."""
    found = urlsplit(url)
    assert found.path.endswith(f"/d/{uid}")
    [panel] = parse_qs(found.query)["viewPanel"]
    return str(PANELS[int(panel)]["title"])


def of_alertmanager(settings: Settings, kind: str) -> str:
    return alert_of(problem(kind=kind), alert_context(settings)).annotations.get("runbook_url", "")


def filled(template: str, alert: str) -> str:
    """What Grafana makes of the template: Go's regexp replaces as Python's does here."""

    def value(found: re.Match[str]) -> str:
        first, *steps = found[1].split(" | ")
        assert first == "$labels.problem"
        text = alert
        for step in steps:
            if step == "toLower":
                text = text.lower()
            else:
                pattern, replacement = re.findall(r'"([^"]*)"', step)
                text = re.sub(pattern, replacement.replace("$", "\\"), text)
        return text

    return re.sub(r"\{\{ (.*?) \}\}", value, template)


def test_there_is_a_panel_for_the_index_each_kind_and_the_pipeline() -> None:
    titles = [panel["title"] for panel in PANELS.values()]
    assert titles[0] == "All runbooks"
    assert sorted(titles[1:]) == sorted([*KINDS, "pipeline"])


def test_pages_link_to_panels_and_hold_no_variable_of_grafana() -> None:
    for panel in PANELS.values():
        content = panel["options"]["content"]
        assert not re.search(r"\$|\[\[", content), panel["title"]
        for url in re.findall(r"\]\(([^)]+)\)", content):
            assert linked(url) in content
    index = next(iter(PANELS.values()))["options"]["content"]
    assert {linked(url) for url in re.findall(r"\]\(([^)]+)\)", index)} == {*KINDS, "pipeline"}


@pytest.mark.parametrize("kind", KINDS)
def test_alerts_of_a_kind_link_to_its_panel(kind: str) -> None:
    url = of_alertmanager(Settings(grafana=GRAFANA), kind)
    assert url.startswith("https://grafana.example.org/at/d/ragtide-runbooks?")
    assert url.endswith("&orgId=3")
    assert linked(url) == kind
    rules = {rule.name: rule for group in alerting({}, AlertingContext(grafana=GRAFANA)).groups for rule in group.rules}
    assert filled(rules["problems"].annotations["runbook_url"], alertname(kind)) == url


def test_alerts_about_ragtide_itself_link_to_the_pipeline_s_panel() -> None:
    names = DashboardSettings(uid_prefix="eu-")
    [health] = [
        group
        for group in alerting({}, AlertingContext(grafana=GRAFANA, names=names)).groups
        if "problems" not in {rule.name for rule in group.rules}
    ]
    assert {linked(rule.annotations["runbook_url"], "eu-runbooks") for rule in health.rules} == {"pipeline"}


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (Settings(), "docs/runbooks/drift.md"),
        (
            Settings(grafana=GRAFANA, dashboards=DashboardSettings(leave_out=("runbooks",))),
            "docs/runbooks/drift.md",
        ),
        (
            Settings(grafana=GRAFANA, alertmanager=AlertmanagerSettings(runbook_url="https://wiki/{kind}")),
            "https://wiki/drift",
        ),
        (Settings(grafana=GRAFANA, alertmanager=AlertmanagerSettings(runbook_url="")), ""),
    ],
)
def test_the_setting_comes_first_and_without_a_dashboard_there_is_a_path(settings: Settings, url: str) -> None:
    assert of_alertmanager(settings, "drift") == url


@pytest.mark.clickhouse
def test_sql_finds_the_same_panels(database: Database) -> None:
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    rows = database.rows(
        f"SELECT kind, {runbook_panel_sql('kind')} AS panel FROM (SELECT arrayJoin([{kinds}]) AS kind)"
    )
    assert {row["kind"]: PANELS[row["panel"]]["title"] for row in rows} == {kind: kind for kind in KINDS}
