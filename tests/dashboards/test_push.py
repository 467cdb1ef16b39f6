"""Dashboards and their data source come into a Grafana once, and are brought up to date."""

import copy
from typing import Any

import pytest

from dashboards.build import build
from dashboards.data_source import DATA_SOURCE_UID, data_source
from dashboards.push import Pushed, push
from evaluators.errors import ConfigError, Transient
from evaluators.registry import load
from sinks.grafana import GrafanaGateway
from tests.contracts.grafana_server import Fault, GrafanaServer

Json = dict[str, Any]
BUILT = build(load())


def gateway(server: GrafanaServer) -> GrafanaGateway:
    return GrafanaGateway(server.settings(), sleep=lambda _: None)


def test_twice_does_nothing_the_second_time(grafana: GrafanaServer) -> None:
    names = ("application", "classification", "objects")
    assert push(gateway(grafana), BUILT) == Pushed(names, (), ())
    before = copy.deepcopy(grafana.state.dashboards)
    assert push(gateway(grafana), BUILT) == Pushed((), (), names)
    assert grafana.state.dashboards == before
    assert len(grafana.made("POST", "/api/dashboards/db")) == len(names)
    stored = grafana.state.dashboards["ragwatch-application"]
    assert stored["meta"]["folderUid"] == "ragwatch"
    assert stored["dashboard"]["panels"] == BUILT["application"]["panels"]


def test_what_a_person_changed_is_put_right(grafana: GrafanaServer) -> None:
    push(gateway(grafana), BUILT)
    stored = grafana.state.dashboards["ragwatch-application"]["dashboard"]
    stored["panels"] = stored["panels"][1:]
    assert push(gateway(grafana), BUILT) == Pushed((), ("application",), ("classification", "objects"))
    stored = grafana.state.dashboards["ragwatch-application"]["dashboard"]
    assert (stored["panels"], stored["version"]) == (BUILT["application"]["panels"], 2)


def test_a_folder_and_a_data_source_of_ones_own(grafana: GrafanaServer) -> None:
    source = data_source("https://clickhouse.example.org/behind", "reader", "a$ecret", "ragwatch")
    for _ in range(2):
        push(gateway(grafana), BUILT, folder_uid="team-a", data_source=source)
    assert list(grafana.state.folders) == ["team-a"]
    stored = grafana.state.data_sources[DATA_SOURCE_UID]
    assert stored["jsonData"] == {
        "host": "clickhouse.example.org", "port": 8443, "protocol": "http", "secure": True, "path": "behind",
        "username": "reader", "defaultDatabase": "ragwatch",
    }  # fmt: skip
    assert stored["secureJsonFields"] == {"password": True}
    assert "a$ecret" not in str(grafana.state)


def test_pushing_goes_on_after_grafana_was_away(grafana: GrafanaServer) -> None:
    grafana.faults.append(Fault("POST", "/api/dashboards/db", 503, times=4))
    with pytest.raises(Transient):
        push(gateway(grafana), BUILT)
    assert push(gateway(grafana), BUILT).made == ("application", "classification", "objects")


def test_an_answer_that_was_lost_leaves_one_dashboard(grafana: GrafanaServer) -> None:
    grafana.faults.append(Fault("POST", "/api/dashboards/db", after=True))
    push(gateway(grafana), BUILT)
    assert sorted(grafana.state.dashboards) == sorted(f"ragwatch-{name}" for name in BUILT)


def test_a_url_without_a_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="http://host:8123"):
        data_source("clickhouse:8123", "u", "p", "d")


def test_the_variable_names_the_data_source_that_is_provisioned() -> None:
    variables = BUILT["application"]["templating"]["list"]
    assert next(each for each in variables if each["name"] == "datasource")["current"]["value"] == DATA_SOURCE_UID
