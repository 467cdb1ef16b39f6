"""The alert rules are what Grafana reads from files, and fire where the jobs stopped or messages wait, nowhere else."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from click.testing import CliRunner

from ragtide.dashboards.alerting.build import AlertingContext
from ragtide.dashboards.alerting.rule import Rule
from ragtide.drift.job_history import RunResult, record_run
from ragtide.drift.jobs import server_time
from ragtide.drift.leadership import elect
from ragtide.drift.settings import JobSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from tests.dashboards.alert_rules import rows, rules

Json = dict[str, Any]
FOLDER = Path(__file__).parents[2] / "deploy" / "grafana" / "provisioning"
# What Grafana knows in these places (its pkg/services/provisioning/alerting/rules_types.go); it ignores anything else.
OF_A_GROUP = {"orgId", "name", "folder", "interval", "rules"}
OF_A_RULE = {
    "uid", "title", "condition", "data", "dashboardUid", "panelId", "noDataState", "execErrState", "for",
    "keepFiringFor", "missing_series_evals_to_resolve", "annotations", "labels", "isPaused", "notification_settings",
    "record",
}  # fmt: skip
OF_A_QUERY = {"refId", "queryType", "relativeTimeRange", "datasourceUid", "model"}


class Waiting(NamedTuple):
    """A row of `outbox`, with what the alert reads of it."""

    message_id: str
    target: str
    state: str
    version: int
    written_at: datetime


class OldRun(NamedTuple):
    """A row of `job_runs` with its time."""

    job: str
    epoch: int
    finished_at: datetime


def read() -> Json:
    found: Json = yaml.safe_load((FOLDER / "alerting" / "ragtide.yaml").read_text())
    return found


def own(database: Database, name: str) -> Rule:
    return rules(AlertingContext(database=database.name))[name]


def fires(database: Database, rule: Rule) -> bool:
    """Whether the rule's only row is above its limit."""
    [row] = rows(database, rule)
    return row.value > rule.limit


def test_the_file_is_the_rendered_one(tmp_path: Path) -> None:
    committed = (FOLDER / "alerting" / "ragtide.yaml").read_text()
    out = tmp_path / "alerts.yaml"
    environment = {
        "RAGTIDE_CONFIG": None,
        "RAGTIDE_CLICKHOUSE__DATABASE": "other",
        "RAGTIDE_JOBS__LIVE_AFTER_S": "7",
    }
    told = CliRunner().invoke(main, ["dashboards", "alerts", "--out", str(out)], env=environment)
    assert (told.exit_code, told.output) == (0, f"{out}\n")
    switch = yaml.safe_load(out.read_text())["groups"][0]["rules"][0]
    query, threshold = switch["data"]
    assert "FROM other.job_runs" in query["model"]["rawSql"]
    assert threshold["model"]["conditions"][0]["evaluator"]["params"] == [7.0]
    printed = CliRunner().invoke(main, ["dashboards", "alerts"], env={"RAGTIDE_CONFIG": None})
    assert printed.output == committed, f"run: ragtide dashboards alerts --out {FOLDER}/alerting/ragtide.yaml"


def test_grafana_knows_every_word_of_it() -> None:
    document = read()
    assert document["apiVersion"] == 1
    titles = []
    for group in document["groups"]:
        assert set(group) <= OF_A_GROUP
        assert re.fullmatch(r"[1-9]\d*m", group["interval"])
        for rule in group["rules"]:
            titles.append(rule["title"])
            assert set(rule) <= OF_A_RULE
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", rule["uid"])
            assert rule["condition"] in [query["refId"] for query in rule["data"]]
            for query in rule["data"]:
                assert set(query) <= OF_A_QUERY
                assert query["model"]["refId"] == query["refId"]
                assert query["model"]["datasource"]["uid"] == query["datasourceUid"]
            # In these Grafana puts variables of its own environment, in annotations only those in braces.
            expanded = [rule["uid"], rule["title"], group["name"], group["folder"], *rule["labels"].values()]
            assert not [text for text in expanded if "$" in text]
            assert not [text for text in rule["annotations"].values() if "${" in text]
    assert len(set(titles)) == len(titles), "titles are unique in a folder"


def test_they_ask_the_data_source_of_the_dashboards_and_silence_alerts() -> None:
    [source] = yaml.safe_load((FOLDER / "datasources" / "ragtide.yaml").read_text())["datasources"]
    stopped, unsent, *_ = read()["groups"][0]["rules"]
    for rule, table, limit_s, states in (
        (stopped, "job_runs", JobSettings().live_after_s, ("Alerting", "Alerting")),
        (unsent, "outbox", 900, ("OK", "OK")),  # three times the longest pause between two attempts
    ):
        query, threshold = rule["data"]
        assert query["datasourceUid"] == source["uid"]
        assert query["model"]["datasource"]["type"] == source["type"]
        assert f"FROM {source['jsonData']['defaultDatabase']}.{table}" in query["model"]["rawSql"]
        assert threshold["datasourceUid"] == "__expr__"
        assert threshold["model"]["conditions"][0]["evaluator"]["params"] == [limit_s]
        assert (rule["noDataState"], rule["execErrState"]) == states


@pytest.mark.clickhouse
def test_it_fires_where_the_jobs_are_silent_and_not_where_they_work(database: Database) -> None:
    rule = own(database, "jobs-stopped")
    assert fires(database, rule), "no job ever ran"
    term, now = elect(database, "me"), server_time(database)
    database.insert("job_runs", [OldRun("watch", term.epoch, now - timedelta(hours=1))])
    assert fires(database, rule)
    record_run(database, "insights", term, term.elected_at, 1.0, RunResult(0, 0))
    assert fires(database, rule), "another job is no sign that windows are judged"
    record_run(database, "watch", term, term.elected_at, 1.0, RunResult(0, 0))
    assert not fires(database, rule)


@pytest.mark.clickhouse
def test_it_fires_where_a_message_waits_for_long_and_not_once_it_was_sent(database: Database) -> None:
    rule = own(database, "outbox-waits")
    assert not fires(database, rule), "nothing is to be sent"
    now = server_time(database)
    message = Waiting("grafana:e1", "grafana", "pending", 1, now - timedelta(minutes=14))
    database.insert("outbox", [message])
    assert not fires(database, rule)
    old = message._replace(message_id="grafana:e2", written_at=now - timedelta(minutes=16))
    database.insert("outbox", [old])
    assert fires(database, rule)
    database.insert("outbox", [old._replace(state="sent", version=2)])
    assert not fires(database, rule)
