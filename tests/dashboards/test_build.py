"""The dashboards as documents: deterministic, complete, sound, and made of the evaluators' specs alone."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragtide.dashboards.build import build, to_json
from ragtide.dashboards.files import plain_files, write
from ragtide.dashboards.rule_lines import rule_lines
from ragtide.dashboards.sdk import JSONEncoder, dashboard
from ragtide.drift.settings import RuleOverride, RuleSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.registry import load
from tests.dashboards.lint import faults, panels, queries

Json = dict[str, Any]


@pytest.fixture(scope="module")
def application() -> Json:
    return build(load())["application"]


def test_the_linter_has_nothing_to_say(application: Json) -> None:
    assert list(faults(application)) == []


SPOILED: list[tuple[str, Callable[[Json], Any]]] = [
    ("panel-title-description", lambda d: d["panels"][1].update(description="")),
    ("panel-datasource", lambda d: d["panels"][1].update(datasource={"uid": "fixed"})),
    ("panel-units", lambda d: d["panels"][1]["fieldConfig"]["defaults"].pop("unit")),
    ("panel-id", lambda d: d["panels"][1].update(id=d["panels"][2]["id"])),
    ("panel-no-targets", lambda d: d["panels"][1].update(targets=[])),
    ("sql-time-bound", lambda d: d["panels"][1]["targets"][0].update(rawSql="SELECT 1")),
    ("sql-quoting", lambda d: d["panels"][1]["targets"][0].update(rawSql="SELECT '${app}', $__toTime")),
    (
        "sql-unknown-variable",
        lambda d: d["panels"][1]["targets"][0].update(
            rawSql="SELECT decodeURLComponent('${nobody:percentencode}'), $__toTime"
        ),
    ),
    ("template-on-time-change-reload", lambda d: d["templating"]["list"][1].update(refresh=0)),
    ("uneditable-dashboard", lambda d: d.update(editable=True)),
    ("grid: ", lambda d: d["panels"][2]["gridPos"].update(x=1)),
]


@pytest.mark.parametrize(("fault", "spoil"), SPOILED, ids=[fault for fault, _ in SPOILED])
def test_the_linter_sees(application: Json, fault: str, spoil: Callable[[Json], Any]) -> None:
    spoiled = copy.deepcopy(application)
    spoil(spoiled)
    assert any(said.startswith(fault) for said in faults(spoiled))


def test_the_same_specs_give_the_same_bytes(application: Json) -> None:
    assert to_json(build(load())["application"]) == to_json(application)


@pytest.mark.parametrize("name", sorted(build(load())))
def test_the_sdk_reads_back_what_it_wrote(name: str) -> None:
    built = build(load(), prometheus_uid="p")[name]
    again = json.loads(JSONEncoder(sort_keys=True).encode(dashboard.Dashboard.from_json(copy.deepcopy(built))))
    for shown in [*again["links"], *again["annotations"].setdefault("list", [])]:
        shown.pop("placement", None)
    assert again == built


def test_every_metric_of_every_evaluator_is_asked_for(application: Json) -> None:
    asked = " ".join(sql for _, sql in queries(application))
    names = {f"'{evaluator.id}.{metric.key}'" for evaluator in load().values() for metric in evaluator.metrics}
    assert [name for name in sorted(names) if name not in asked] == []


def test_a_primary_metric_shows_its_threshold_and_the_side_that_is_bad(application: Json) -> None:
    shown = {panel.get("title"): panel for panel in panels(application)}
    rules = rule_lines(load(), RuleSettings())
    for evaluator in load().values():
        for metric in evaluator.metrics:
            full = f"{evaluator.id}.{metric.key}"
            panel, of_records = shown.get(full), shown.get(f"{full}: share of bad records")
            assert (panel is not None) == metric.primary
            if of_records is not None:  # the rule judges records: the mean has no line
                assert rules[full].limit is not None
                assert steps_of(of_records) == [(None, "green"), (rules[full].limit, "red")]
            elif panel is not None and metric.threshold is not None:
                colours = ("red", "green") if metric.better == "higher" else ("green", "red")
                assert steps_of(panel) == [(None, colours[0]), (metric.threshold, colours[1])]


def steps_of(panel: Json) -> list[tuple[float | None, str]]:
    return [(step["value"], step["color"]) for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]


def test_lines_are_those_of_the_rules_in_the_settings() -> None:
    rules = RuleSettings(
        overrides=(
            RuleOverride(metric="groundedness.groundedness", min=0.4),
            RuleOverride(metric="groundedness.groundedness", min=0.9, app="one"),  # of one application: not here
            RuleOverride(metric="operations.latency_seconds", max=1.5),
            RuleOverride(metric="rouge.rouge_l", enabled=False),
        )
    )
    built = build(load(), rules=rules)["application"]
    shown = {panel["title"]: panel for panel in panels(built) if panel["type"] == "timeseries"}

    def steps(title: str) -> list[tuple[float | None, str]]:
        return steps_of(shown[title])

    assert steps("groundedness.groundedness") == [(None, "red"), (0.4, "green")]
    assert steps("operations.latency_seconds") == [(None, "green"), (1.5, "red")]
    assert "1.5 or less is good" in shown["operations.latency_seconds"]["description"].lower()
    assert steps("rouge.rouge_l") == [(None, "green")]
    asked = dict(queries(built))
    assert "'operations.latency_seconds'" in asked["table Quality A"]
    assert "'rouge.rouge_l'" not in asked["table Quality A"]
    assert "latency_seconds" not in asked["timeseries Quality over time A"]  # its axis is in per cent


def test_taking_an_evaluator_away_moves_no_other_panels_id(application: Json) -> None:
    fewer = build({id_: each for id_, each in load().items() if id_ != "inputs"})["application"]
    ids = {panel["id"]: panel["title"] for panel in panels(application)}
    for panel in panels(fewer):
        assert ids[panel["id"]] == panel["title"]
    assert len(list(panels(fewer))) < len(ids)


def test_no_evaluator_with_a_threshold_still_gives_a_sound_dashboard() -> None:
    only = build({id_: each for id_, each in load().items() if id_ == "inputs"})["application"]
    assert list(faults(only)) == []
    assert not any("IN ()" in sql for _, sql in queries(only))


def test_files_for_provisioning(application: Json, tmp_path: Path) -> None:
    (file,) = write(plain_files({"application": application}), tmp_path / "new")
    assert file.name == "ragtide-application.json"
    assert json.loads(file.read_text()) == application


def test_a_database_that_would_need_quoting_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"clickhouse\.database"):
        build(load(), database="a-b; DROP")
