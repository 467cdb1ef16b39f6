"""Dashboards and their data source come into a Grafana once, and are brought up to date."""

import copy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ragtide.dashboards.build import build
from ragtide.dashboards.data_source import DATA_SOURCE_UID, data_source
from ragtide.dashboards.push import Difference, PushResult, diff, push
from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.evaluators.registry import load
from ragtide.sinks.grafana import GrafanaGateway
from ragtide.stream.cli import main
from tests.contracts.grafana_server import TOKEN, Fault, GrafanaServer
from tests.dashboards.lint import panels

Json = dict[str, Any]
BUILT = build(load())
NAMES = tuple(sorted(BUILT))
PAGE = b"<html><body><h1>502</h1>Bad gateway</body></html>"


def gateway(server: GrafanaServer) -> GrafanaGateway:
    return GrafanaGateway(server.settings(), sleep=lambda _: None)


def test_twice_does_nothing_the_second_time(grafana: GrafanaServer) -> None:
    assert push(gateway(grafana), BUILT) == PushResult(NAMES, (), ())
    before = copy.deepcopy(grafana.state.dashboards)
    assert push(gateway(grafana), BUILT) == PushResult((), (), NAMES)
    assert grafana.state.dashboards == before
    assert len(grafana.made("POST", "/api/dashboards/db")) == len(NAMES)
    stored = grafana.state.dashboards["ragtide-application"]
    assert stored["meta"]["folderUid"] == "ragtide"
    assert stored["dashboard"]["panels"] == BUILT["application"]["panels"]


def test_what_a_person_changed_is_put_right(grafana: GrafanaServer) -> None:
    push(gateway(grafana), BUILT)
    stored = grafana.state.dashboards["ragtide-application"]["dashboard"]
    stored["panels"] = stored["panels"][1:]
    assert push(gateway(grafana), BUILT) == PushResult(
        (), ("application",), tuple(n for n in NAMES if n != "application")
    )
    stored = grafana.state.dashboards["ragtide-application"]["dashboard"]
    assert (stored["panels"], stored["version"]) == (BUILT["application"]["panels"], 2)


def test_a_folder_and_a_data_source_of_ones_own(grafana: GrafanaServer) -> None:
    source = data_source("https://clickhouse.example.org/behind", "reader", "a$ecret", "ragtide")
    for _ in range(2):
        push(gateway(grafana), BUILT, folder_uid="team-a", folder_title="Team A", data_source=source)
    assert {uid: folder["title"] for uid, folder in grafana.state.folders.items()} == {"team-a": "Team A"}
    stored = grafana.state.data_sources[DATA_SOURCE_UID]
    assert stored["jsonData"] == {
        "host": "clickhouse.example.org", "port": 8443, "protocol": "http", "secure": True, "path": "behind",
        "username": "reader", "defaultDatabase": "ragtide",
    }  # fmt: skip
    assert stored["secureJsonFields"] == {"password": True}
    assert "a$ecret" not in str(grafana.state)


def test_pushing_goes_on_after_grafana_was_away(grafana: GrafanaServer) -> None:
    grafana.faults.append(Fault("POST", "/api/dashboards/db", 503, times=4))
    with pytest.raises(Transient):
        push(gateway(grafana), BUILT)
    assert push(gateway(grafana), BUILT).created == NAMES


def test_an_answer_that_was_lost_leaves_one_dashboard(grafana: GrafanaServer) -> None:
    grafana.faults.append(Fault("POST", "/api/dashboards/db", after=True))
    push(gateway(grafana), BUILT)
    assert sorted(grafana.state.dashboards) == sorted(f"ragtide-{name}" for name in BUILT)


def test_the_command_brings_what_the_settings_say_and_no_password_to_the_screen(
    grafana: GrafanaServer, tmp_path: Path
) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text('[[rules.overrides]]\nmetric = "groundedness.groundedness"\nmin = 0.4\n')
    variables = {
        "CONFIG": str(file),
        "GRAFANA__URL": grafana.url,
        "GRAFANA__TOKEN": TOKEN,
        "WINDOWS__BASE_S": "10",
        "CLICKHOUSE__PASSWORD": "a$ecret",
    }
    environment = {f"RAGTIDE_{name}": value for name, value in variables.items()}

    def pushed() -> str:
        command = ["dashboards", "push", "--data-source", "http://clickhouse:8123"]
        told = CliRunner().invoke(main, command, env=environment)
        assert told.exit_code == 0, told.output
        return told.output

    first, second = pushed(), pushed()
    assert first.splitlines() == [f"created: {name}" for name in NAMES]
    assert second.splitlines() == [f"unchanged: {name}" for name in NAMES]
    assert grafana.state.data_sources[DATA_SOURCE_UID]["jsonData"]["host"] == "clickhouse"
    [put] = [call.body for call in grafana.made("POST", "/api/datasources")]
    assert put["secureJsonData"] == {"password": "a$ecret"}
    reader = {"RAGTIDE_GRAFANA__DATA_SOURCE_USER": "grafana", "RAGTIDE_GRAFANA__DATA_SOURCE_PASSWORD": "reads only"}
    environment |= reader
    pushed()
    put = grafana.made("PUT", f"/api/datasources/uid/{DATA_SOURCE_UID}")[-1].body
    assert (put["jsonData"]["username"], put["secureJsonData"]) == ("grafana", {"password": "reads only"})
    shown = grafana.state.dashboards["ragtide-application"]["dashboard"]
    [panel] = [each for each in panels(shown) if each["title"] == "groundedness.groundedness"]
    assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1]["value"] == 0.4
    sizes = "multiIf($__interval_s >= 86400, 86400, $__interval_s >= 3600, 3600, 10)"
    assert sizes in panel["targets"][0]["rawSql"]


def test_a_url_without_a_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="http://host:8123"):
        data_source("clickhouse:8123", "u", "p", "d")


def test_the_variable_names_the_data_source_that_is_provisioned() -> None:
    variables = BUILT["application"]["templating"]["list"]
    assert next(each for each in variables if each["name"] == "datasource")["current"]["value"] == DATA_SOURCE_UID


def test_a_difference_names_panels_variables_and_settings(grafana: GrafanaServer) -> None:
    assert diff(gateway(grafana), BUILT) == [Difference(name, ("not in Grafana",)) for name in NAMES]
    push(gateway(grafana), BUILT)
    assert diff(gateway(grafana), BUILT) == []
    stored = grafana.state.dashboards["ragtide-pipeline"]["dashboard"]
    stored["refresh"] = None  # Grafana leaves out what says nothing; this says something else
    stored["panels"][1]["gridPos"]["w"] = 24
    del stored["panels"][2]
    stored["panels"].append({"title": "Mine", "type": "text"})
    stored["templating"]["list"] = []
    [found] = diff(gateway(grafana), BUILT)
    assert (found.name, found.details) == (
        "pipeline",
        (
            "panel 'Jobs last worked' differs in gridPos",
            "panel 'Furthest behind' is missing in Grafana",
            "panel 'Mine' is only in Grafana",
            "variable 'datasource' is missing in Grafana",
            "settings differ: refresh",
        ),
    )
    assert [call.verb for call in grafana.calls[-len(NAMES) :]] == ["GET"] * len(NAMES)  # it changes nothing


def test_what_grafana_adds_is_no_difference(grafana: GrafanaServer) -> None:
    push(gateway(grafana), BUILT)
    for one in grafana.state.dashboards.values():
        one["dashboard"]["panels"][0] |= {"libraryPanel": None}
        one["dashboard"] |= {"gnetId": None}
    assert diff(gateway(grafana), BUILT) == []
    assert push(gateway(grafana), BUILT).unchanged == NAMES


def test_the_command_tells_differences_by_its_exit_status_and_errors_as_sentences(grafana: GrafanaServer) -> None:
    environment = {"RAGTIDE_GRAFANA__URL": grafana.url, "RAGTIDE_GRAFANA__TOKEN": TOKEN}

    def told(*command: str) -> Any:
        return CliRunner().invoke(main, ["dashboards", *command], env=environment)

    before = told("diff")
    assert before.exit_code == 1
    assert before.stdout.splitlines()[:2] == ["application:", "  not in Grafana"]
    assert told("push").exit_code == 0
    assert (told("diff").exit_code, told("diff").stdout) == (0, "no differences\n")
    for status, body, says in (
        (401, b'{"message": "Invalid API key"}', "Make a new service account token and set grafana.token"),
        (412, b'{"message": "A dashboard with the same name exists"}', "412: A dashboard with the same name exists"),
        (400, PAGE, "400: 502 Bad gateway"),
    ):
        grafana.faults.append(Fault("GET", "/api/dashboards/uid/", status, body))
        failed = told("diff")
        assert (failed.exit_code, len(failed.stderr.splitlines())) == (2, 1)
        assert says in failed.stderr
    without = CliRunner().invoke(main, ["dashboards", "diff"])
    assert (without.exit_code, "grafana.url is not set" in without.stderr) == (2, True)
