"""Alerting as files: contact points, policies, timings and templates, in words that Grafana knows, without secrets."""

import json
import re
import stat
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from openapi_schema_validator import OAS30Validator
from pydantic import ValidationError

from ragtide.dashboards.alerting.build import AlertingContext, alerting
from ragtide.dashboards.alerting.files import provisioning, resource_files
from ragtide.dashboards.alerting.rule import duration, title_of, uid_of
from ragtide.dashboards.alerting_settings import AlertRoute, GrafanaAlertingSettings
from ragtide.drift.settings import Objective, RuleSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.registry import load as registry
from ragtide.stream.cli import main
from ragtide.stream.settings.loader import load as load_settings
from tests.contracts.check_grafana import load

Json = dict[str, Any]
SECTION: Json = {
    "contact_point": "operators",
    "fault_contact_point": "platform",
    "contact_points": {
        "operators": {"type": "webhook", "url": "https://hooks.example.org/$ecret-1", "bearer_token": "$ecret-2"},
        "pager": {"type": "pagerduty", "integration_key": "ecret-3"},
        "search": {"type": "slack", "token": "xoxb-ecret-4", "channel": "#search"},
        "chat": {"type": "slack", "url": "$__file{/run/secrets/slack}", "resolved": False},
        "platform": {"type": "email", "addresses": ["kim@example.org", "ops@example.org"]},
        "office": {"type": "teams", "url": "https://teams.example.org/ecret-5"},
    },
    "routes": [
        {"owner": "search-team", "severities": ["critical"], "contact_point": "pager", "group_wait_s": 10},
        {"owner": "search-*", "contact_point": "search", "mute_timings": ["off_hours"], "continues": True},
        {"owner": "", "severities": ["info", "warning"], "contact_point": "office", "repeat_interval_s": 86400},
    ],
    "mute_timings": {
        "off_hours": [
            {"times": ["00:00-07:00", "19:00-24:00"], "location": "Europe/Berlin"},
            {"weekdays": ["saturday", "sunday"]},
        ]
    },
}
OBJECTIVES = RuleSettings(
    objectives=(
        Objective(name="few-errors", metric="operations.error", max=0.5),
        Objective(name="few-errors", metric="operations.error", max=0.5, app="shop $HOME/ü"),
    )
)


def made(**changes: Any) -> Any:
    settings = GrafanaAlertingSettings.model_validate({**deepcopy(SECTION), **changes})
    return alerting(registry(), AlertingContext(settings=settings, rules=OBJECTIVES))


def document(**changes: Any) -> Json:
    found: Json = yaml.safe_load(provisioning(made(**changes)))
    return found


def faults(name: str, value: object) -> list[str]:
    """Where a value is not what our description of Grafana has, with no unknown members."""
    description = load()
    schema = {**description["components"]["schemas"][name], "components": description["components"]}
    return [f"{list(one.absolute_path)}: {one.message}" for one in OAS30Validator(schema).iter_errors(value)]


def test_every_part_has_the_words_of_grafana_s_api() -> None:
    """A file has them too, but for a few names: the group's, and the organisation's id."""
    found = document(whole_tree=True)
    assert set(found) == {"apiVersion", "groups", "contactPoints", "templates", "muteTimes", "policies"}
    for group in found["groups"]:
        for rule in group["rules"]:
            as_called = {**rule, "orgID": 1, "folderUID": "f", "ruleGroup": group["name"]}
            assert faults("Rule", as_called) == []
    for point in found["contactPoints"]:
        [receiver] = point["receivers"]
        assert faults("ContactPoint", {**receiver, "name": point["name"]}) == []
    for timing in found["muteTimes"]:
        assert timing.pop("orgId") == 1
        assert faults("MuteTiming", timing) == []
    [tree] = found["policies"]
    assert tree.pop("orgId") == 1
    assert faults("Route", tree) == []
    assert faults("Route", {**tree, "object_matcher": []}) != [], "a typo is found"


def test_a_policy_routes_by_owner_and_severity() -> None:
    [tree] = document(whole_tree=True)["policies"]
    assert (tree["receiver"], tree["group_by"], tree["group_wait"], tree["repeat_interval"]) == (
        "ragtide-operators", ["app", "environment", "type"], "30s", "4h",
    )  # fmt: skip
    failing, critical, search, nobodys = tree["routes"]
    assert failing == {
        "receiver": "ragtide-platform", "object_matchers": [["alertname", "=~", "DatasourceError|DatasourceNoData"]],
    }  # fmt: skip
    assert critical == {
        "receiver": "ragtide-pager", "object_matchers": [["owner", "=", "search-team"], ["severity", "=", "critical"]],
        "group_wait": "10s",
    }  # fmt: skip
    assert search["object_matchers"] == [["owner", "=~", "(?s:search\\-.*)"]]
    assert (search["continue"], search["mute_time_intervals"]) == (True, ["ragtide-off_hours"])
    assert nobodys["object_matchers"] == [["owner", "=", ""], ["severity", "=~", "info|warning"]]
    assert nobodys["repeat_interval"] == "1d"


def test_a_file_replaces_no_tree_unless_told_to() -> None:
    assert "policies" not in document()
    assert "policies" not in document(whole_tree=True, contact_point="", fault_contact_point="", routes=[])


def test_mute_timings_have_each_interval() -> None:
    [timing] = document()["muteTimes"]
    assert timing["name"] == "ragtide-off_hours"
    assert timing["time_intervals"] == [
        {
            "times": [{"start_time": "00:00", "end_time": "07:00"}, {"start_time": "19:00", "end_time": "24:00"}],
            "location": "Europe/Berlin",
        },
        {"weekdays": ["saturday", "sunday"], "location": "UTC"},
    ]


def settings_of(found: Json) -> dict[str, Json]:
    return {
        point["name"].removeprefix("ragtide-"): point["receivers"][0]["settings"] for point in found["contactPoints"]
    }


def test_no_secret_is_in_a_file_but_the_variable_that_holds_it() -> None:
    found = document()
    assert "ecret-" not in json.dumps(found)
    settings = settings_of(found)
    variable = "$RAGTIDE_GRAFANA_ALERTING__CONTACT_POINTS__"
    assert settings["operators"]["url"] == f"{variable}OPERATORS__URL"
    assert settings["operators"]["authorization_credentials"] == f"{variable}OPERATORS__BEARER_TOKEN"
    assert settings["pager"]["integrationKey"] == f"{variable}PAGER__INTEGRATION_KEY"
    assert settings["search"]["token"] == f"{variable}SEARCH__TOKEN"
    assert settings["office"]["url"] == f"{variable}OFFICE__URL"
    assert settings["chat"]["url"] == "$__file{/run/secrets/slack}", "a reference stays as it is"


@pytest.mark.parametrize(
    ("secret", "is_one"),
    [("${KEY}", True), ("$__env{KEY}", True), ("$__file{/run/key}", True), ("$Tr0ngPass", False), ("$KEY", False)],
)
def test_a_secret_that_begins_like_a_variable_is_no_reference(secret: str, *, is_one: bool) -> None:
    point = {"type": "pagerduty", "integration_key": secret}
    found = document(contact_points={**SECTION["contact_points"], "pager": point})
    variable = "$RAGTIDE_GRAFANA_ALERTING__CONTACT_POINTS__PAGER__INTEGRATION_KEY"
    assert settings_of(found)["pager"]["integrationKey"] == (secret if is_one else variable)


def test_failing_rules_reach_the_contact_point_if_none_is_set_for_them() -> None:
    [tree] = document(whole_tree=True, fault_contact_point="")["policies"]
    assert tree["routes"][0] == {
        "receiver": "ragtide-operators", "object_matchers": [["alertname", "=~", "DatasourceError|DatasourceNoData"]],
    }  # fmt: skip
    assert len(tree["routes"]) == 4


def test_secrets_are_written_if_asked_for_with_each_dollar_doubled() -> None:
    settings = settings_of(yaml.safe_load(provisioning(made(), with_secrets=True)))
    assert settings["operators"]["url"] == "https://hooks.example.org/$$ecret-1"
    assert settings["operators"]["authorization_credentials"] == "$$ecret-2"
    assert settings["chat"]["url"] == "$__file{/run/secrets/slack}"


def test_each_type_has_title_and_message_of_the_templates() -> None:
    settings = settings_of(document())
    title, message = '{{ template "ragtide.title" . }}', '{{ template "ragtide.message" . }}'
    assert (settings["operators"]["title"], settings["operators"]["authorization_scheme"]) == (title, "Bearer")
    assert (settings["pager"]["summary"], settings["pager"]["details"]) == (title, {"message": message})
    assert settings["pager"]["severity"] == "{{ with .CommonLabels.severity }}{{ . }}{{ else }}critical{{ end }}"
    assert (settings["search"]["title"], settings["search"]["text"]) == (title, message)
    assert settings["search"]["recipient"] == "#search"
    assert settings["platform"]["addresses"] == "kim@example.org;ops@example.org"
    assert (settings["platform"]["subject"], settings["office"]["message"]) == (title, message)
    [template] = document()["templates"]
    assert (template["name"], "$" in template["template"]) == ("ragtide", False)
    for name in ("title", "message", "alert"):
        assert template["template"].count(f'{{{{ define "ragtide.{name}" -}}}}') == 1
    [chat] = [point for point in document()["contactPoints"] if point["name"] == "ragtide-chat"]
    assert chat["receivers"][0]["disableResolveMessage"] is True


def test_names_of_strangers_are_no_variables_of_grafana() -> None:
    [group] = [one for one in document()["groups"] if one["name"] == "ragtide-objectives"]
    pages = [rule for rule in group["rules"] if "page" in rule["title"]]
    assert [rule["title"] for rule in pages] == [
        "ragtide objective few-errors: page", "ragtide objective few-errors of shop $$HOME/ü: page",
    ]  # fmt: skip
    uids = [rule["uid"] for rule in group["rules"]]
    assert len(set(uids)) == 4
    assert all(len(uid) <= 40 and uid.replace("-", "").replace("_", "").isascii() for uid in uids)


def test_manifests_hold_the_same_and_name_variables_for_secrets() -> None:
    files = {str(file.path): json.loads(file.text) for file in resource_files(made(whole_tree=True))}
    kinds = [one["kind"] for one in files.values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "Folder": 1, "AlertRule": 13, "Receiver": 6, "TemplateGroup": 1, "TimeInterval": 1, "RoutingTree": 1,
    }  # fmt: skip
    rule = files["rules/ragtide-problems.json"]
    assert rule["apiVersion"] == "rules.alerting.grafana.app/v0alpha1"
    assert rule["metadata"] == {"name": "ragtide-problems", "annotations": {"grafana.app/folder": "ragtide-alerts"}}
    assert (rule["spec"]["noDataState"], rule["spec"]["execErrState"]) == ("Ok", "KeepLast")
    assert [name for name, one in rule["spec"]["expressions"].items() if one["source"]] == ["B"]
    assert rule["spec"]["expressions"]["A"]["relativeTimeRange"] == {"from": "600s", "to": "0s"}
    receiver = files["notifications/receiver-ragtide-pager.json"]["spec"]
    assert receiver["integrations"][0]["settings"]["integrationKey"] == (
        "${RAGTIDE_GRAFANA_ALERTING__CONTACT_POINTS__PAGER__INTEGRATION_KEY}"
    )
    assert "ecret-" not in json.dumps(files)
    route = files["notifications/routingtree-user-defined.json"]["spec"]["routes"][1]
    assert route["matchers"][0] == {"label": "owner", "type": "=", "value": "search-team"}
    assert files["notifications/receiver-ragtide-pager.json"]["metadata"]["name"] == "cmFndGlkZS1wYWdlcg"
    with pytest.raises(ConfigError, match=r"contact_points\.chat: url is a reference"):
        list(resource_files(made(), with_secrets=True))
    plain = {name: one for name, one in SECTION["contact_points"].items() if name != "chat"}
    shown = json.dumps([json.loads(one.text) for one in resource_files(made(contact_points=plain), with_secrets=True)])
    assert "ecret-3" in shown


def test_the_command_writes_a_file_a_folder_or_manifests(tmp_path: Path) -> None:
    config = tmp_path / "ragtide.toml"
    config.write_text(
        '[grafana_alerting]\ncontact_point = "pager"\n'
        '[grafana_alerting.contact_points.pager]\ntype = "pagerduty"\nintegration_key = "ecret"\n'
    )

    def run(*options: str) -> Any:
        return CliRunner().invoke(main, ["dashboards", "alerts", "--config", str(config), *options])

    assert run("--out", str(tmp_path / "new")).output == f"{tmp_path / 'new' / 'ragtide.yaml'}\n"
    assert "ecret" not in (tmp_path / "new" / "ragtide.yaml").read_text()
    private = tmp_path / "private.yaml"
    private.touch(mode=0o644)
    assert run("--out", str(private), "--secrets").exit_code == 0
    assert '"integrationKey": "ecret"' in private.read_text()
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    listed = run("--format", "resource", "--out", str(tmp_path / "manifests")).output.splitlines()
    assert str(tmp_path / "manifests" / "notifications" / "receiver-ragtide-pager.json") in listed
    assert "give a folder" in run("--format", "resource").stderr
    printed = run("--secrets")
    assert (printed.exit_code, "--secrets needs --out: secrets are not printed" in printed.stderr) == (2, True)
    assert 'ecret"' not in printed.output


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"contact_point": "nobody"}, "contact_point: no contact point nobody; valid: chat, office"),
        ({"contact_point": ""}, "routes and fault_contact_point need contact_point"),
        ({"routes": [{"contact_point": "nobody"}]}, "routes: no contact point nobody"),
        ({"routes": [{"contact_point": "pager", "mute_timings": ["never"]}]}, "no mute timing never; valid: off_hours"),
        ({"mute_timings": {"off_hours": [{"times": ["22:00-06:00"]}]}}, "for a night give two"),
        ({"contact_points": {"a": {"type": "slack"}}}, "set url or token"),
        ({"contact_points": {"a": {"type": "slack", "token": "t"}}}, "token needs channel"),
        ({"contact_points": {"a": {"type": "teams", "url": "hooks"}}}, "give http:// or https://"),
        ({"contact_points": {"a": {"type": "email", "addresses": ["a;b@c"]}}}, "one an item"),
        ({"contact_points": {"a": {"type": "fax"}}}, "'webhook', 'slack', 'pagerduty', 'email', 'teams'"),
        ({"contact_points": {"a-b": {"type": "pagerduty", "integration_key": "k"}}}, "String should match pattern"),
        ({"contact_points": {"a__b": {"type": "pagerduty", "integration_key": "k"}}}, "String should match pattern"),
        ({"mute_timings": {"off_hours": [{"weekdays": ["monday:sunday"]}]}}, "the earlier end first"),
        ({"mute_timings": {"off_hours": [{"location": "Europe/Berln"}]}}, "Europe/Berln: no such time zone"),
        ({"mute_timings": {"off_hours": [{"weekdays": ["mon"]}]}}, "mon: give days such as saturday"),
        ({"mute_timings": {"off_hours": [{"months": ["13"]}]}}, "13: give months such as december"),
        ({"mute_timings": {"off_hours": [{"days_of_month": ["-3:2"]}]}}, "give days such as 1, 10:15"),
        ({"mute_timings": {"off_hours": [{"days_of_month": ["28:-1"]}]}}, "the earlier end first"),
        ({"mute_timings": {"off_hours": [{"years": ["soon"]}]}}, "soon: give years such as 2026"),
        ({"every_s": 15}, "multiple of 10"),
    ],
)
def test_what_cannot_be_is_refused_by_name(changes: Json, says: str) -> None:
    with pytest.raises(ValidationError, match=says.replace("(", r"\(")) as raised:
        GrafanaAlertingSettings.model_validate({**deepcopy(SECTION), **changes})
    assert "ecret-" not in str(raised.value).partition("input_value")[0]


def test_the_section_is_read_from_file_and_environment() -> None:
    environment = {
        "RAGTIDE_GRAFANA_ALERTING__CONTACT_POINT": "pager",
        "RAGTIDE_GRAFANA_ALERTING__CONTACT_POINTS__PAGER__TYPE": "pagerduty",
        "RAGTIDE_GRAFANA_ALERTING__CONTACT_POINTS__PAGER__INTEGRATION_KEY": "k3y-of-mine",
    }
    found = load_settings(None, environment).settings.grafana_alerting
    assert found.contact_points["pager"].type == "pagerduty"
    assert "k3y-of-mine" not in repr(found)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (60, "1m"),
        (90, "1m30s"),
        (14400, "4h"),
        (86400, "1d"),
        (90000, "1d1h"),
        (604800, "1w"),
        (691200, "8d"),
    ],
)
def test_durations_are_written_as_grafana_returns_them(seconds: int, text: str) -> None:
    assert duration(seconds) == text


def test_long_and_odd_names_are_uids_and_titles_of_their_own() -> None:
    assert uid_of("ragtide-", "problems") == "ragtide-problems"
    names = ["a" * 50, "a" * 51, "ü", "ö", "a b", "a-b"]
    uids = [uid_of("ragtide-", name) for name in names]
    assert len(set(uids)) == len(names)
    assert all(len(uid) <= 40 for uid in uids)
    assert [len(title_of("x" * length)) for length in (190, 191)] == [190, 190]
    assert title_of("a\nb") == "a b"


def test_the_example_in_the_docs_is_valid() -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerting.md").read_text()
    [example] = [text for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "[grafana_alerting]" in text]
    found = GrafanaAlertingSettings.model_validate(tomllib.loads(example)["grafana_alerting"])
    assert set(found.contact_points) == {"operators", "search_pager"}


def test_a_route_without_conditions_gets_everything() -> None:
    assert AlertRoute(contact_point="a").owner == "*"
    [tree] = document(whole_tree=True, routes=[{"contact_point": "pager"}])["policies"]
    assert tree["routes"][1] == {"receiver": "ragtide-pager", "object_matchers": []}
