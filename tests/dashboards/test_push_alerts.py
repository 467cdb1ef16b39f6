"""Alerting comes into a Grafana once, is brought up to date, and leaves what others made."""

import copy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ragtide.dashboards.alerting.build import Alerting, AlertingContext, alerting
from ragtide.dashboards.alerting.push import push_alerting
from ragtide.dashboards.alerting_settings import GrafanaAlertingSettings
from ragtide.dashboards.settings import DashboardSettings
from ragtide.drift.settings import Objective, RuleSettings
from ragtide.evaluators.errors import ConfigError, Refused, Transient
from ragtide.evaluators.registry import load
from ragtide.sinks.grafana_alerting import AlertingGateway
from ragtide.stream.cli import main
from tests.contracts.grafana_server import TOKEN, Fault, GrafanaServer

BASE = "/api/v1/provisioning"
CONTACTS: dict[str, Any] = {
    "operators": {"type": "webhook", "url": "https://hooks.example.org/ecret"},
    "pager": {"type": "pagerduty", "integration_key": "ecret"},
}
OBJECTIVES = RuleSettings(objectives=(Objective(name="few-errors", metric="operations.error", max=0.5),))


def made(rules: RuleSettings = OBJECTIVES, uid_prefix: str = "ragtide-", **changes: Any) -> Alerting:
    section = {
        "contact_point": "operators",
        "contact_points": CONTACTS,
        "routes": [{"severities": ["critical"], "contact_point": "pager", "mute_timings": ["nights"]}],
        "mute_timings": {"nights": [{"times": ["00:00-06:00"]}]},
        **changes,
    }
    settings = GrafanaAlertingSettings.model_validate(section)
    names = DashboardSettings(uid_prefix=uid_prefix)
    return alerting(load(), AlertingContext(settings=settings, rules=rules, names=names))


def gateway(server: GrafanaServer) -> AlertingGateway:
    return AlertingGateway(server.settings(), sleep=lambda _: None)


NAMES = [
    "template ragtide",
    "mute timing ragtide-nights",
    "contact point ragtide-operators",
    "contact point ragtide-pager",
    "notification policy",
    "rules ragtide",
    "rules ragtide-problems",
    "rules ragtide-objectives",
]


def writes(grafana: GrafanaServer) -> list[str]:
    return [f"{call.verb} {call.path}" for call in grafana.calls if call.verb != "GET"]


def test_twice_does_nothing_the_second_time(grafana: GrafanaServer) -> None:
    first = push_alerting(gateway(grafana), made())
    assert (first.created, first.changed, first.unchanged, first.removed) == (NAMES, [], [], [])
    before, calls = copy.deepcopy(grafana.state.alerting), len(writes(grafana))
    second = push_alerting(gateway(grafana), made())
    assert (second.created, second.changed, second.unchanged, second.removed) == ([], [], NAMES, [])
    assert len(writes(grafana)) == calls
    assert grafana.state.alerting.groups == before.groups
    sent = [call for call in grafana.calls if call.verb != "GET" and call.path.startswith(BASE)]
    assert {call.headers["X-Disable-Provenance"] for call in sent} == {"true"}
    assert list(grafana.state.folders) == ["ragtide-alerts"]


def test_what_a_person_changed_is_put_right(grafana: GrafanaServer) -> None:
    push_alerting(gateway(grafana), made())
    state = grafana.state.alerting
    state.groups["ragtide-alerts", "ragtide"]["rules"][0]["for"] = "5m"
    state.contact_points["ragtide-to-pager"]["settings"]["summary"] = "mine"
    state.mute_timings["ragtide-nights"]["time_intervals"] = []
    state.templates["ragtide"] = "mine"
    state.policies["routes"][0]["group_wait"] = "1h"
    result = push_alerting(gateway(grafana), made())
    assert result.changed == [
        "template ragtide", "mute timing ragtide-nights", "contact point ragtide-pager", "notification policy",
        "rules ragtide",
    ]  # fmt: skip
    assert push_alerting(gateway(grafana), made()).unchanged == NAMES


def test_a_label_that_a_person_added_is_taken_away(grafana: GrafanaServer) -> None:
    push_alerting(gateway(grafana), made())
    grafana.state.alerting.groups["ragtide-alerts", "ragtide"]["rules"][0]["labels"]["team"] = "mine"
    assert push_alerting(gateway(grafana), made()).changed == ["rules ragtide"]


def test_policies_of_others_stay_and_ours_comes_first(grafana: GrafanaServer) -> None:
    others = [{"receiver": "grafana-default-email", "object_matchers": [["team", "=", "web"]], "continue": True}]
    grafana.state.alerting.policies |= {"routes": copy.deepcopy(others), "group_by": ["team"]}
    for _ in range(2):
        push_alerting(gateway(grafana), made())
        push_alerting(gateway(grafana), made(group_wait_s=45))
    tree = grafana.state.alerting.policies
    ours, *rest = tree["routes"]
    assert (rest, tree["receiver"], tree["group_by"]) == (others, "grafana-default-email", ["team"])
    assert (ours["object_matchers"], ours["group_wait"]) == ([["alert_source", "=", "ragtide-alerts"]], "45s")


def test_the_policy_matches_our_rules_and_no_name_of_a_folder(grafana: GrafanaServer) -> None:
    """Grafana puts the titles of parents into `grafana_folder`, and people rename and move folders."""
    push_alerting(gateway(grafana), made())
    grafana.state.folders["ragtide-alerts"]["title"] = "Quality"
    assert push_alerting(gateway(grafana), made()).unchanged == NAMES
    [[label, _, value]] = grafana.state.alerting.policies["routes"][0]["object_matchers"]
    rules = [rule for group in grafana.state.alerting.groups.values() for rule in group["rules"]]
    assert [rule["labels"][label] for rule in rules] == [value] * 11


def test_without_a_contact_point_no_policy_is_written(grafana: GrafanaServer) -> None:
    push_alerting(gateway(grafana), alerting(load()))
    assert [call for call in writes(grafana) if "policies" in call or "contact-points" in call] == []


def test_our_policy_goes_with_the_contact_point_and_comes_back_first(grafana: GrafanaServer) -> None:
    theirs = {"receiver": "grafana-default-email", "object_matchers": [["team", "=", "web"]]}
    push_alerting(gateway(grafana), made())
    policies = grafana.state.alerting.policies
    policies["routes"] = [copy.deepcopy(theirs), *policies["routes"]]
    assert push_alerting(gateway(grafana), made()).changed == ["notification policy"], "theirs would win"
    assert grafana.state.alerting.policies["routes"][1:] == [theirs]
    assert push_alerting(gateway(grafana), made(contact_point="", routes=[])).removed == ["notification policy"]
    assert grafana.state.alerting.policies["routes"] == [theirs]
    assert push_alerting(gateway(grafana), made(contact_point="", routes=[])).removed == []


PREFIXES = ["ragtide-", "ragtide-eu-", "", "ragtide"]


def test_deployments_in_one_grafana_leave_each_other_s_alone(grafana: GrafanaServer) -> None:
    state = grafana.state.alerting
    for prefix in PREFIXES:
        result = push_alerting(gateway(grafana), made(uid_prefix=prefix))
        assert (result.changed, result.unchanged, result.removed) == ([], [], [])
    rules = {rule["uid"] for group in state.groups.values() for rule in group["rules"]}
    titles = {folder["title"] for folder in grafana.state.folders.values()}
    assert (len(rules), len(titles), len(state.policies["routes"])) == (len(PREFIXES) * 11, len(PREFIXES), 4)
    assert len({point["name"] for point in state.contact_points.values()}) == 2 * len(PREFIXES)
    for prefix in PREFIXES:
        result = push_alerting(gateway(grafana), made(uid_prefix=prefix))
        assert (result.changed, result.created) == ([], [])
    for prefix in PREFIXES:
        gone = push_alerting(gateway(grafana), made(uid_prefix=prefix, rules=RuleSettings(), problems=False))
        assert len(gone.removed) == 3
        left = {rule["uid"] for group in state.groups.values() for rule in group["rules"]}
        assert len(rules) - len(left) == 3
        rules = left


@pytest.mark.parametrize("prefix", PREFIXES)
def test_rules_that_people_added_to_our_group_stay(grafana: GrafanaServer, prefix: str) -> None:
    push_alerting(gateway(grafana), made(uid_prefix=prefix))
    state = grafana.state.alerting
    key = next(key for key in state.groups if key[1].endswith("-problems"))
    theirs = {**copy.deepcopy(state.groups[key]["rules"][0]), "uid": "ae3f2k9z", "title": "theirs"}
    state.groups[key]["rules"].insert(0, theirs)
    assert push_alerting(gateway(grafana), made(uid_prefix=prefix)).changed == []
    longer = made(uid_prefix=prefix, every_s=120)
    assert f"rules {key[1]}" in push_alerting(gateway(grafana), longer).changed
    assert [rule["uid"] for rule in state.groups[key]["rules"]] == [f"{prefix}problems", "ae3f2k9z"]
    push_alerting(gateway(grafana), made(uid_prefix=prefix, problems=False))
    assert [rule["uid"] for rule in state.groups[key]["rules"]] == ["ae3f2k9z"]


def test_names_of_others_are_not_taken(grafana: GrafanaServer) -> None:
    state = grafana.state.alerting
    theirs = {"uid": "their-uid", "name": "operators", "type": "email", "settings": {"addresses": "a@b"}}
    state.contact_points["their-uid"] = {**theirs, "disableResolveMessage": False}
    state.mute_timings["nights"] = {"name": "nights", "time_intervals": []}
    push_alerting(gateway(grafana), made())
    assert state.mute_timings["nights"] == {"name": "nights", "time_intervals": []}
    assert push_alerting(gateway(grafana), made()).unchanged == NAMES
    state.contact_points["their-uid"]["name"] = "ragtide-pager"
    assert push_alerting(gateway(grafana), made()).unchanged == NAMES, "they added theirs to ours"
    del state.contact_points["ragtide-to-pager"]
    calls = len(writes(grafana))
    with pytest.raises(ConfigError, match="contact point ragtide-pager exists and is not ragtide's: choose another"):
        push_alerting(gateway(grafana), made())
    assert len(writes(grafana)) == calls


def test_a_setting_that_is_gone_is_taken_away(grafana: GrafanaServer) -> None:
    hook = {"type": "webhook", "url": "https://hooks.example.org/ecret", "user": "kim", "password": "ecret"}
    push_alerting(gateway(grafana), made(contact_points={**CONTACTS, "operators": hook}))
    assert push_alerting(gateway(grafana), made()).changed == ["contact point ragtide-operators"]
    stored = grafana.state.alerting.contact_points["ragtide-to-operators"]["settings"]
    assert set(stored) == {"httpMethod", "title", "message", "url"}


def test_names_of_times_are_stored_as_grafana_writes_them(grafana: GrafanaServer) -> None:
    """Else each push would find a difference."""
    interval = {
        "weekdays": ["Monday:Friday", "Sunday:sunday"], "months": ["December", "july:8"], "years": ["2026:2026"],
        "days_of_month": ["1", "-3:-1", "10:10"],
    }  # fmt: skip
    push_alerting(gateway(grafana), made(mute_timings={"nights": [interval]}))
    [stored] = grafana.state.alerting.mute_timings["ragtide-nights"]["time_intervals"]
    assert stored == {
        "weekdays": ["monday:friday", "sunday"], "months": ["12", "7:8"], "years": ["2026"],
        "days_of_month": ["1", "-3:-1", "10"], "location": "UTC",
    }  # fmt: skip


def test_rules_that_are_gone_are_removed_and_those_of_others_stay(grafana: GrafanaServer) -> None:
    push_alerting(gateway(grafana), made())
    theirs = copy.deepcopy(grafana.state.alerting.groups["ragtide-alerts", "ragtide-problems"])
    theirs["title"] = "theirs"
    theirs["rules"][0] |= {"uid": "their-rule", "ruleGroup": "theirs"}
    grafana.state.alerting.groups["ragtide-alerts", "theirs"] = theirs
    result = push_alerting(gateway(grafana), made(rules=RuleSettings()))
    assert result.removed == ["rule ragtide objective few-errors: page", "rule ragtide objective few-errors: ticket"]
    assert {name for _, name in grafana.state.alerting.groups} == {"ragtide", "ragtide-problems", "theirs"}
    fewer = push_alerting(gateway(grafana), made(rules=RuleSettings(), leave_out=["disk-full"]))
    assert fewer.changed == ["rules ragtide"]
    stored = grafana.state.alerting.groups["ragtide-alerts", "ragtide"]["rules"]
    assert "ragtide-disk-full" not in [rule["uid"] for rule in stored]


def test_a_new_secret_is_pushed_if_told_to(grafana: GrafanaServer) -> None:
    push_alerting(gateway(grafana), made())
    rotated = made(contact_points={**CONTACTS, "pager": {"type": "pagerduty", "integration_key": "new"}})
    assert push_alerting(gateway(grafana), rotated).changed == []
    assert push_alerting(gateway(grafana), rotated, with_secrets=True).changed == [
        "contact point ragtide-operators", "contact point ragtide-pager",
    ]  # fmt: skip
    stored = grafana.state.alerting.contact_points["ragtide-to-pager"]
    assert stored["settings"]["integrationKey"] == "new"


def test_a_reference_is_for_files_and_pushes_nothing(grafana: GrafanaServer) -> None:
    named = made(contact_points={**CONTACTS, "pager": {"type": "pagerduty", "integration_key": "$__file{/key}"}})
    with pytest.raises(ConfigError, match=r"contact_points\.pager: integrationKey is a reference"):
        push_alerting(gateway(grafana), named)
    assert grafana.calls == []


@pytest.mark.parametrize("path", [f"{BASE}/contact-points", f"{BASE}/mute-timings"])
def test_an_answer_that_was_lost_leaves_one(grafana: GrafanaServer, path: str) -> None:
    grafana.faults.append(Fault("POST", path, 503, after=True))
    push_alerting(gateway(grafana), made())
    assert push_alerting(gateway(grafana), made()).unchanged == NAMES


def test_pushing_goes_on_after_grafana_was_away(grafana: GrafanaServer) -> None:
    grafana.faults.append(Fault("PUT", f"{BASE}/folder", 503, times=4))
    with pytest.raises(Transient):
        push_alerting(gateway(grafana), made())
    assert push_alerting(gateway(grafana), made()).created == NAMES[5:]


def test_what_grafana_refuses_is_said_with_its_reason(grafana: GrafanaServer) -> None:
    grafana.faults.append(Fault("PUT", f"{BASE}/policies", 400, b'{"message": "invalid matcher"}'))
    with pytest.raises(Refused, match="PUT /api/v1/provisioning/policies with 400: invalid matcher"):
        push_alerting(gateway(grafana), made())


def test_the_command_pushes_alerts_with_the_dashboards_and_shows_no_secret(
    grafana: GrafanaServer, tmp_path: Path
) -> None:
    config = tmp_path / "ragtide.toml"
    config.write_text(
        '[grafana_alerting]\ncontact_point = "pager"\n'
        '[grafana_alerting.contact_points.pager]\ntype = "pagerduty"\nintegration_key = "ecret"\n'
    )
    environment = {"RAGTIDE_GRAFANA__URL": grafana.url, "RAGTIDE_GRAFANA__TOKEN": TOKEN}

    def pushed(*options: str) -> list[str]:
        told = CliRunner().invoke(
            main, ["dashboards", "push", "--alerts", "--config", str(config), *options], env=environment
        )
        assert told.exit_code == 0, told.output
        assert "ecret" not in told.output
        return [line for line in told.output.splitlines() if "rules" in line or "contact" in line or "policy" in line]

    names = ["contact point ragtide-pager", "notification policy", "rules ragtide", "rules ragtide-problems"]
    assert pushed() == [f"created: {name}" for name in names]
    assert pushed() == [f"unchanged: {name}" for name in names]
    assert "changed: contact point ragtide-pager" in pushed("--secrets")
    links = grafana.state.alerting.groups["ragtide-alerts", "ragtide-problems"]["rules"][0]["annotations"]
    assert links["dashboard_url"].startswith(f"{grafana.url}/d/ragtide-problems?orgId=1")
