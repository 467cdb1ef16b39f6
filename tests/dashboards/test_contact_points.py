"""Grafana's contact points get a sample through Grafana, and a preview shows the alert that the pushed rule makes.

What Grafana answers is in tests/contracts/grafana_resources.openapi.yaml, with the files of its source.
"""

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from ragtide.dashboards.alerting.build import AlertingContext, alerting
from ragtide.dashboards.alerting.contact_points import (
    contact_point_names,
    preview_contact_points,
    routed_contact_point_names,
    send_sample_to_contact_points,
)
from ragtide.dashboards.alerting.push import push_alerting
from ragtide.dashboards.alerting_settings import GrafanaAlertingSettings
from ragtide.dashboards.problem_links import problem_link
from ragtide.dashboards.runbook_links import fill, runbook_template
from ragtide.dashboards.settings import DashboardSettings
from ragtide.drift.jobs import server_time
from ragtide.drift.notify import AlertContext, Answer, Preview
from ragtide.drift.problems import Problem, load_problems
from ragtide.drift.routes import Route
from ragtide.drift.settings import Severity
from ragtide.evaluators.registry import load
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.grafana_alerting import AlertingGateway
from ragtide.sinks.settings import GrafanaSettings
from tests.contracts.grafana_receivers_state import NAMESPACE, SentAlert
from tests.contracts.grafana_server import READ_ONLY_TOKEN, Fault, GrafanaServer
from tests.dashboards.alert_rules import firing, rows, rules
from tests.dashboards.sample_rows import event
from tests.dashboards.test_alert_templates import evaluated

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RECEIVERS = f"/apis/notifications.alerting.grafana.app/v1beta1/namespaces/{NAMESPACE}/receivers"
OWNERS = (Route(app="docs-*", owner="search-team", labels={"channel": "#docs"}), Route(app="shop", owner="shop"))
POINTS: dict[str, Any] = {
    "operators": {"type": "slack", "url": "https://hooks.slack.example.org/services/T0/B0/supersecret"},
    "pager": {"type": "pagerduty", "integration_key": "abcdefabcdefabcdefabcdef"},
    "search": {"type": "webhook", "url": "https://hooks.example.org/path-secret", "bearer_token": "bearer"},
    "faults": {"type": "email", "addresses": ["kim@example.org"]},
    "unused": {"type": "teams", "url": "https://teams.example.org/x"},
}
ROUTES = [
    {"owner": "search-*", "severities": ["critical"], "contact_point": "pager", "continues": True},
    {"owner": "search-team", "contact_point": "search"},
]
SECTION = {
    "contact_point": "operators", "fault_contact_point": "faults", "contact_points": POINTS, "routes": ROUTES,
}  # fmt: skip


def context(url: str = "https://grafana.example.org", prefix: str = "ragtide-", **section: Any) -> AlertingContext:
    return AlertingContext(
        settings=GrafanaAlertingSettings.model_validate(SECTION | section),
        names=DashboardSettings(uid_prefix=prefix),
        routes=OWNERS,
        grafana=GrafanaSettings(url=url, token=SecretStr("x")),
    )


def pushed(grafana: GrafanaServer, **section: Any) -> AlertingContext:
    made = context(grafana.url, **section)
    push_alerting(AlertingGateway(grafana.settings(), lambda _: None), alerting(load(), made))
    return made


def answers_of(
    grafana: GrafanaServer, context: AlertingContext, *, severity: Severity = "info", **settings: Any
) -> dict[str, Answer]:
    names = {name: key for name, key in contact_point_names(context).items() if key != "unused"}
    asked = replace(context, grafana=grafana.settings(**settings))
    alerts = AlertContext(OWNERS)
    answers = send_sample_to_contact_points(names, asked, alerts, severity, NOW, sleep=lambda _: None)
    return {one.target.removeprefix("contact_point:"): one for one in answers}


def sent(grafana: GrafanaServer) -> list[SentAlert]:
    return grafana.state.receivers.tested


def test_every_contact_point_has_a_name_and_alerts_reach_some() -> None:
    names = {f"contact_point:{key}": key for key in POINTS}
    assert contact_point_names(context()) == names
    assert routed_contact_point_names(context()) == [name for name in names if name != "contact_point:unused"]
    unrouted = context(contact_point="", fault_contact_point="", routes=[])
    assert routed_contact_point_names(unrouted) == [*names]
    none = context(contact_points={}, contact_point="", fault_contact_point="", routes=[])
    for without in (context(url=""), none):
        assert contact_point_names(without) == {}
        assert routed_contact_point_names(without) == []


def test_each_gets_the_sample_with_the_secrets_that_grafana_stores(grafana: GrafanaServer) -> None:
    made = pushed(grafana)
    answers = answers_of(grafana, made, severity="critical")
    assert {name: (one.ok, one.says) for name, one in answers.items()} == {
        "operators": (True, "slack: sent"), "faults": (True, "email: sent"),
        "pager": (True, "pagerduty: sent"), "search": (True, "webhook: sent"),
    }  # fmt: skip
    found = {one.title: one for one in sent(grafana)}
    assert set(found) == {f"ragtide-{name}" for name in ("operators", "faults", "pager", "search")}
    assert found["ragtide-operators"].settings["url"] == POINTS["operators"]["url"]
    assert found["ragtide-search"].settings["authorization_credentials"] == "bearer"
    labels = found["ragtide-pager"].labels
    assert (labels["app"], labels["severity"], labels["alertname"]) == ("ragtide-test", "critical", "ragtide problem")
    assert labels["problem"] == "RagtideThreshold"
    assert labels["alert_source"] == made.folder.uid
    assert found["ragtide-pager"].annotations["title"] == "ragtide-test: a test, nothing is wrong"
    posted = "".join(str(call.body) for call in grafana.made("POST", f"{RECEIVERS}/"))
    for secret in ("supersecret", "abcdefabcdef", "bearer'"):
        assert secret not in posted, "Grafana's own secrets do not leave it"


def test_an_integration_that_people_added_is_tested_too(grafana: GrafanaServer) -> None:
    made = pushed(grafana)
    gateway = AlertingGateway(grafana.settings(), lambda _: None)
    theirs = {"uid": "theirs", "name": "ragtide-pager", "type": "teams", "settings": {"url": "https://a/secret"},
              "disableResolveMessage": True}  # fmt: skip
    gateway.add_contact_point(theirs)
    grafana.state.receivers.failures["teams"] = "no such channel"
    answer = answers_of(grafana, made)["pager"]
    assert (answer.ok, answer.says) == (False, "pagerduty: sent, teams: no such channel")


def test_a_failure_says_why_without_a_secret_and_the_others_are_tried(grafana: GrafanaServer) -> None:
    made = pushed(grafana)
    grafana.state.receivers.failures |= {
        "slack": f'Post "{POINTS["operators"]["url"]}": dial tcp: lookup hooks.slack.example.org: no such host',
        "pagerduty": f"invalid key {POINTS['pager']['integration_key']}\n for this "
        + "service " * 55
        + f"and {POINTS['pager']['integration_key']} again",
        "webhook": "got 401 for bearer and user:tok-1234567890-abcdefghij",
    }
    answers = answers_of(grafana, made)
    assert answers["operators"].says == (
        'slack: Post "https://hooks.slack.example.org/…": dial tcp: lookup hooks.slack.example.org: no such host'
    )
    assert answers["pager"].says.startswith("pagerduty: invalid key … for this service service")
    assert "abcd" not in answers["pager"].says, "no half of a secret at the cut"
    assert answers["search"].says == "webhook: got 401 for … and user:…"
    assert [name for name, one in answers.items() if one.ok] == ["faults"]
    assert len(sent(grafana)) == 4


PASSWORD = "Tr0ub4dor&3-correcthorsebattery1"  # a part of it looks like a token


def test_no_part_of_a_secret_is_shown(grafana: GrafanaServer) -> None:
    """Neither of one that holds another, nor of one that the end of a message would cut."""
    search = POINTS["search"] | {"user": "kim", "password": PASSWORD, "bearer_token": ""}
    pager = POINTS["pager"] | {"integration_key": "correcthorsebattery1"}
    made = pushed(grafana, contact_points=POINTS | {"search": search, "pager": pager})
    grafana.state.receivers.failures["webhook"] = f"kim:{PASSWORD} refused"
    assert answers_of(grafana, made)["search"].says == "webhook: kim:… refused"
    for status, page in ((400, False), (500, False), (400, True)):
        for before in range(170, 200):
            said = f"{'x ' * (before // 2)}{PASSWORD}"
            body = f"<html>{said}</html>" if page else json.dumps({"message": said})
            grafana.faults.append(Fault("POST", RECEIVERS, status, body.encode(), about="hooks.example.org"))
            says = answers_of(grafana, made)["search"].says
            assert f"with {status}: x x" in says
            assert "Tr" not in says, (status, before)
    assert all(fault.times == 0 for fault in grafana.faults)


def test_what_grafana_does_not_show_names_the_command_and_the_permission(grafana: GrafanaServer) -> None:
    pushed(grafana, contact_points={"operators": POINTS["operators"]}, routes=[], fault_contact_point="")
    answers = answers_of(grafana, context(grafana.url))
    assert answers["operators"].ok
    assert (answers["pager"].ok, answers["pager"].says) == (
        False, "Grafana shows no contact point ragtide-pager to this token: run `ragtide dashboards push --alerts`, "
        "or give the token permission alert.notifications.receivers:read",
    )  # fmt: skip
    grafana.state.receivers.hidden.add("ragtide-operators")
    assert "shows no contact point ragtide-operators" in answers_of(grafana, context(grafana.url))["operators"].says


def test_the_names_are_those_of_the_deployment(grafana: GrafanaServer) -> None:
    made = pushed(grafana, prefix="blue-")
    assert all(one.ok for one in answers_of(grafana, made).values())
    assert {one.title for one in sent(grafana)} == {"blue-operators", "blue-faults", "blue-pager", "blue-search"}
    assert not answers_of(grafana, context(grafana.url))["pager"].ok


def test_an_older_grafana_says_which_version_is_needed(grafana: GrafanaServer) -> None:
    made = pushed(grafana)
    grafana.state.receivers.is_old = True
    answers = answers_of(grafana, made)
    assert len(answers) == 4
    for one in answers.values():
        assert one.ok is None
        assert f"not tested: Grafana at {grafana.url} answered GET {RECEIVERS} with 404" in one.says
        assert "Testing contact points needs Grafana 13 or newer" in one.says
    assert sent(grafana) == []


def test_a_token_without_the_permission_says_which_is_needed(grafana: GrafanaServer) -> None:
    made = pushed(grafana)
    answers = answers_of(grafana, made, token=READ_ONLY_TOKEN)
    assert len(answers) == 4
    for one in answers.values():
        assert one.ok is False
        assert "with 403: " in one.says
        assert (
            "permissions alert.notifications.receivers:read, alert.notifications.receivers:write and "
            "alert.notifications.receivers.test:create, which role Editor has"
        ) in one.says
    assert "grafana.token" in answers_of(grafana, made, token="glsa_other")["pager"].says


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b'{"message": "Invalid API key"}', "with 401: Invalid API key. Make a new service account token"),
        (404, b'{"message": "Integration not found"}', "with 404: Integration not found"),
        (410, b'{"message": "Gone"}', "with 410: Gone"),
        (429, b'{"message": "Slow down"}', "with 429: Slow down"),
        (500, b"<html><h1>It broke</h1></html>", "with 500: It broke. The alert may have been sent"),
        (502, b"", "with 502: no message. The alert may have been sent"),
        (504, b"", "with 504: no message. The alert may have been sent"),
        (None, b"", "the connection ended (ConnectionError). The alert may have been sent"),
        (200, b"<html>a login page</html>", "something else than JSON"),
        (200, b"{}", "where Grafana gives a str (status)"),
    ],
)
def test_every_answer_is_a_sentence_and_the_others_are_tried(
    grafana: GrafanaServer, status: int | None, body: bytes, said: str
) -> None:
    made = pushed(grafana)
    grafana.faults.append(Fault("POST", RECEIVERS, status, body, times=9, about="pagerduty"))
    answers = answers_of(grafana, made)
    assert [name for name, one in answers.items() if not one.ok] == ["pager"]
    assert said in answers["pager"].says
    assert "tried again" not in answers["pager"].says
    assert ("may have been sent" in answers["pager"].says) == ("may have been sent" in said)
    assert ("Grafana 13" in answers["pager"].says) is False
    assert "<" not in answers["pager"].says
    tries = [call for call in grafana.calls if call.path.endswith("/test")]
    assert len(tries) == 3, "the fault itself is not carried out"


def test_a_test_that_gets_no_answer_is_not_sent_again(grafana: GrafanaServer) -> None:
    made = pushed(grafana)
    released = threading.Event()
    grafana.faults.append(Fault("POST", RECEIVERS, 200, b"{}", about="pagerduty", after=True, hold=released, times=9))
    try:
        answer = answers_of(grafana, made, timeout_s=0.5)["pager"]
    finally:
        released.set()
    assert not answer.ok
    assert "within grafana.timeout_s (0.5 s). The alert may have been sent" in answer.says
    assert grafana.faults[0].times == 8


def test_a_grafana_that_is_away_fails_each_contact_point_once(grafana: GrafanaServer) -> None:
    made = pushed(grafana)
    grafana.faults.append(Fault("GET", "/api/frontend/settings", 503, b"", times=9))
    answers = answers_of(grafana, made)
    assert [one.ok for one in answers.values()] == [False] * 4
    assert grafana.faults[0].times == 5, "one call and its three retries for all of them"


def previews(database: Database, problem: Problem, made: AlertingContext, now: datetime) -> dict[str, Preview]:
    runbook = partial(fill, runbook_template(None, made.grafana, made.names))
    alerts = AlertContext(OWNERS, {}, runbook, problem_link=partial(problem_link, settings=made.grafana))
    found = preview_contact_points(database, contact_point_names(made), problem, made, alerts, now)
    return {one.target.removeprefix("contact_point:"): one for one in found}


def opened(at: datetime, **details: Any) -> Any:
    return event("p", "p-1", "opened", 1, at, **details)


@pytest.mark.clickhouse
@pytest.mark.alertmanager
def test_a_preview_is_the_alert_that_the_pushed_rule_makes(database: Database, tmp_path: Path) -> None:
    """Its query runs in ClickHouse, and Alertmanager's engine renders its annotations, as Grafana's does."""
    now = server_time(database)
    said = {"title": "docs-bot: groundedness fell", "description": "It fell.", "actions": ("Roll back.", "Then look.")}
    place = {"app": "docs-bot", "segment": "tenant", "segment_value": "a b"}
    database.insert(
        "problem_events",
        [opened(now - timedelta(minutes=5), kind="drift", **place, **said)],
    )
    made = replace(context(), database=database.name)
    [problem] = load_problems(database)
    content = previews(database, problem, made, now)["operators"].content
    rule = rules(made)["problems"]
    [alert] = firing(database, rule)
    [texts] = rows(database, rule, rule.texts)
    own = {"alertname": rule.title, "grafana_folder": made.folder.title, "alert_source": made.folder.uid}
    assert content["labels"] == alert.labels | own
    assert {name: content["annotations"][name] for name in ("title", "description")} == {
        name: texts.labels[name] for name in ("title", "description")
    }
    assert set(content["annotations"]) == set(rule.annotations)
    (tmp_path / "ragtide.tmpl").write_text("")
    (tmp_path / "data.json").write_text(json.dumps({"alerts": [], "commonLabels": alert.labels}))
    for name in ("summary", "dashboard_url", "runbook_url"):
        rendered = evaluated("{{ $labels := .CommonLabels }}" + rule.annotations[name], tmp_path)
        assert content["annotations"][name] == rendered, name
    assert content["annotations"]["summary"] == "docs-bot (prod): accuracy"
    assert "var-problem=p&var-app=docs-bot" in content["annotations"]["dashboard_url"]


@pytest.mark.clickhouse
def test_routes_decide_which_contact_point_gets_it(database: Database) -> None:
    now = server_time(database)
    database.insert("problem_events", [opened(now - timedelta(minutes=5), app="docs-bot", severity="critical")])
    [problem] = load_problems(database)
    made = context()

    def getting(problem: Problem, made: AlertingContext) -> set[str]:
        return {name for name, one in previews(database, problem, made, now).items() if not one.why_not}

    assert getting(problem, made) == {"pager", "search"}
    assert getting(replace(problem, severity="info"), made) == {"search"}
    assert getting(replace(problem, app="shop"), made) == {"operators"}
    assert getting(replace(problem, app="nobody"), made) == {"operators"}
    assert getting(replace(problem, app="nobody"), context(routes=[{"owner": "", "contact_point": "pager"}])) == {
        "pager"
    }
    refused = previews(database, replace(problem, app="shop"), made, now)
    assert refused["faults"].why_not == "it gets only DatasourceError and DatasourceNoData"
    assert refused["pager"].why_not == "[grafana_alerting] sends the alert to operators"
    both = context(routes=[{"owner": "docs", "contact_point": "faults"}])
    assert previews(database, problem, both, now)["faults"].why_not == "[grafana_alerting] sends the alert to operators"
    assert refused["faults"].content == refused["operators"].content
    unrouted = context(contact_point="", fault_contact_point="", routes=[])
    assert "grafana_alerting.contact_point is not set" in previews(database, problem, unrouted, now)["pager"].why_not


@pytest.mark.clickhouse
def test_a_preview_says_why_there_is_no_alert(database: Database) -> None:
    now = server_time(database)
    database.insert("problem_events", [opened(now - timedelta(minutes=5), app="shop")])
    [problem] = load_problems(database)

    def why(problem: Problem = problem, **changes: Any) -> str:
        return previews(database, problem, replace(context(), **changes), now)["operators"].why_not

    assert why() == ""
    assert why(replace(problem, state="resolved")) == "the problem is resolved"
    assert why(replace(problem, opened_at=now)) == "the alert begins 30 s after the problem opened"
    assert why(replace(problem, opened_at=now, type="privacy")) == ""
    assert why(replace(problem, opened_at=now, type="security", aspect="finding")) == "", "as the rule has it"
    assert why(replace(problem, segment="objective")).startswith("alerts of burn rates stand in for it")
    assert why(replace(problem, muted_by="kim")) == "muted by kim"
    away = AlertmanagerSettings(urls=("http://127.0.0.1:9",))
    assert why(alertmanager=away) == "alertmanager.urls is set, so Grafana makes no alerts of problems"
    assert why(settings=GrafanaAlertingSettings.model_validate(SECTION | {"problems": False})) == (
        "grafana_alerting.problems is false, so Grafana makes no alerts of problems"
    )
