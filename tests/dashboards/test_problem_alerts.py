"""Open problems are alerts in Grafana with the labels that they have in Alertmanager."""

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragtide.dashboards.alerting.build import AlertingContext
from ragtide.dashboards.alerting.rule import Rule
from ragtide.dashboards.alerting_settings import GrafanaAlertingSettings
from ragtide.drift.jobs import server_time
from ragtide.drift.leadership import elect
from ragtide.drift.notify import AlertContext, alert_of
from ragtide.drift.notify.open_problems import OpenProblems
from ragtide.drift.problems import EventRow, is_leak, load_problems, record_groups
from ragtide.drift.routes import Route
from ragtide.drift.settings import JobSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import GrafanaSettings
from tests.dashboards.alert_rules import firing, rows, rules
from tests.dashboards.macros import VARIABLE
from tests.dashboards.sample_rows import event

ROUTES = (
    Route(app="docs-*", metric="operations.*", owner="platform", labels={"channel": "#ops", "empty": ""}),
    Route(app="docs-*", owner="docs", labels={"channel": "#docs"}),
    Route(type="privacy", owner="legal", labels={"pager": "p1\nx" + "y" * 300}),
)
MORE = {"cluster": "eu", "channel": "#all"}
JUST_OPENED = timedelta(minutes=5)


def rule(database: Database, **others: Any) -> Rule:
    context = AlertingContext(
        database=database.name, routes=ROUTES, alertmanager=AlertmanagerSettings(labels=MORE), **others
    )
    return rules(context)["problems"]


def in_alertmanager(database: Database, now: datetime) -> list[dict[str, str]]:
    """Labels of the alerts that are posted, with the alertname where Grafana has it."""
    wanted = OpenProblems(database, AlertContext(ROUTES, MORE)).look(now)
    return [{"problem" if name == "alertname" else name: value for name, value in one.labels.items()}
            for one in wanted.firing.values()]  # fmt: skip


def in_grafana(database: Database, **others: Any) -> list[dict[str, str]]:
    return [alert.labels for alert in firing(database, rule(database, **others))]


def by_id(labels: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted(labels, key=lambda one: one["problem_id"])


def opened(problem_id: str, at: datetime, **details: Any) -> EventRow:
    return event(problem_id, f"{problem_id}-1", "opened", 1, at, **details)


def sample(at: datetime) -> Iterator[EventRow]:
    """Problems of every kind of place, and names that no label may hold as they are."""
    yield opened("plain", at, app="docs-bot")
    yield opened("routed", at, app="docs-help", metric="operations.error", type="runtime", severity="critical")
    yield opened("segment", at, app="shop", segment="tenant", segment_value="acme", model="")
    yield opened("system", at, app="", environment="", model="", metric="", aspect="storage", segment="disk",
                 segment_value="default", type="storage")  # fmt: skip
    yield opened("leak", at, app="a\u2028b\t c  d ", type="privacy", metric="pii_leakage.passes", model="é  é")
    yield opened("long", at, app="x" * 190 + "é" * 20, environment=" two  blanks ", metric="no_dot")
    yield opened("budget", at, app="docs-bot", kind="slo_burn", segment="objective", segment_value="few-errors")
    yield opened("joined", at, app="a", kind="drift", metric="quality.a")
    yield event("joined", "joined-2", "kind_opened", 1, at, app="a", kind="threshold", metric="quality.a")
    yield event("late", "late-1", "pending", 1, at, app="b", kind="coverage", metric="quality.b")
    yield event("late", "late-2", "opened", 1, at, app="b", kind="early_change", metric="quality.b")
    yield event("late", "late-3", "kind_opened", 1, at, app="b", kind="coverage", metric="quality.b")
    yield event("resolved", "resolved-1", "opened", 1, at, app="c")
    yield event("resolved", "resolved-2", "resolved", 1, at + timedelta(minutes=1), app="c")
    yield event("pending", "pending-1", "pending", 1, at, app="d")


@pytest.mark.clickhouse
def test_the_labels_are_those_in_alertmanager(database: Database) -> None:
    now = server_time(database)
    database.insert("problem_events", list(sample(now - JUST_OPENED)))
    grafana = GrafanaAlertingSettings(burn_rates=False)
    found = by_id(in_grafana(database, settings=grafana))
    assert found == by_id(in_alertmanager(database, now))
    named = {one["problem_id"]: one for one in found}
    assert set(named) == {"plain", "routed", "segment", "system", "leak", "long", "budget", "joined", "late"}
    assert named["routed"] == {
        "problem": "RagtideThreshold", "app": "docs-help", "environment": "prod", "severity": "critical",
        "type": "runtime", "metric": "operations.error", "evaluator": "operations", "model": "m1",
        "owner": "platform", "problem_id": "routed", "channel": "#ops", "cluster": "eu",
    }  # fmt: skip
    assert set(named["system"]) == {"problem", "severity", "type", "segment", "problem_id", "cluster", "channel"}
    assert (named["leak"]["app"], named["leak"]["model"]) == ("a b c d", "é é")
    assert (len(named["long"]["app"]), named["long"]["environment"]) == (200, "two  blanks")
    assert (named["joined"]["problem"], named["late"]["problem"]) == ("RagtideDrift", "RagtideEarlyChange")


NAMES = st.text(alphabet=st.sampled_from("ab.=*'\\$`{}\"\n\t\x00\x85\u2028\u3000é🦊% "), max_size=8)


@pytest.mark.clickhouse
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=6))
def test_hostile_names_are_the_same_labels_too(database: Database, names: list[tuple[str, str, str]]) -> None:
    now = server_time(database)
    database.command("TRUNCATE TABLE problem_events")
    database.insert(
        "problem_events",
        [
            opened(f"p{number}", now - JUST_OPENED, app=app, segment="tenant", segment_value=value, metric=metric)
            for number, (app, value, metric) in enumerate(names)
        ],
    )
    record_groups(database, now, elect(database, "me"))
    assert by_id(in_grafana(database)) == by_id(in_alertmanager(database, now))


@pytest.mark.clickhouse
def test_a_muted_problem_is_no_alert_until_its_mute_ends(database: Database) -> None:
    now = server_time(database)
    at = now - JUST_OPENED
    until = {"muted": now + timedelta(hours=1), "over": now - timedelta(minutes=1)}
    events = [opened(one, at, app=one, metric=f"quality.{one}") for one in ("muted", "over", "always", "unmuted")]
    for one in ("muted", "over", "always", "unmuted"):
        attributes = f'{{"until": "{until[one].isoformat()}"}}' if one in until else "{}"
        events.append(event(one, f"{one}-m", "muted", 1, at, actor="kim", attributes=attributes, kind="", type=""))
    events.append(event("unmuted", "unmuted-u", "unmuted", 1, at + timedelta(seconds=1), actor="kim", kind="", type=""))
    database.insert("problem_events", events)
    assert {one["problem_id"] for one in in_grafana(database)} == {"over", "unmuted"}
    assert by_id(in_grafana(database)) == by_id(in_alertmanager(database, now))


@pytest.mark.clickhouse
def test_a_symptom_is_no_alert_unless_it_is_worse_than_its_parent(database: Database) -> None:
    """Missing data explain coverage whatever its severity; an error of the application explains latency if no worse."""
    now = server_time(database)
    at = now - JUST_OPENED
    place = {"environment": "prod", "model": ""}
    database.insert(
        "problem_events",
        [
            opened("silent", at, app="a", aspect="missing", metric="", kind="missing_data", **place),
            opened("coverage", at, app="a", aspect="coverage", severity="critical", kind="coverage", **place),
            opened("errors", at, app="b", metric="operations.error", type="runtime", **place),
            opened("slow", at, app="b", metric="operations.latency_seconds", type="efficiency", **place),
            opened("dear", at, app="b", metric="operations.cost_usd", type="cost", severity="critical", **place),
            opened("alone", at, app="c", metric="quality.c", **place),
        ],
    )
    assert len(in_grafana(database)) == 6, "parents are not known yet"
    record_groups(database, now, elect(database, "me"))
    assert {one["problem_id"] for one in in_grafana(database)} == {"silent", "errors", "dear", "alone"}
    assert by_id(in_grafana(database)) == by_id(in_alertmanager(database, now))


@pytest.mark.clickhouse
def test_problems_wait_for_their_parents_and_leaks_do_not(database: Database) -> None:
    now = server_time(database)
    database.insert(
        "problem_events",
        [
            opened("new", now, app="a"),
            opened("leak", now, app="a", type="privacy", metric="pii_leakage.passes"),
            opened("found", now, app="a", type="security", aspect="finding", metric="pii_leakage.passes"),
        ],
    )
    at_once = {one.problem_id for one in load_problems(database) if is_leak(one)}
    assert {one["problem_id"] for one in in_grafana(database)} == at_once == {"leak", "found"}
    assert len(in_grafana(database, jobs=JobSettings(group_wait_s=0))) == 3


@pytest.mark.clickhouse
def test_burn_rate_rules_stand_in_for_problems_of_objectives(database: Database) -> None:
    at = server_time(database) - JUST_OPENED
    database.insert("problem_events", [opened("budget", at, kind="slo_burn", segment="objective", segment_value="x")])
    assert in_grafana(database) == []
    assert len(in_grafana(database, settings=GrafanaAlertingSettings(burn_rates=False))) == 1


@pytest.mark.clickhouse
def test_texts_have_the_labels_of_their_alert_and_what_happened(database: Database) -> None:
    now = server_time(database)
    fell = opened("p", now - JUST_OPENED, app="docs-bot", description="docs-bot (prod): it\nfell from 0.9 to 0.4",
                  actions=("Look there.", "Then there."))  # fmt: skip
    database.insert("problem_events", [fell])
    found = rule(database)
    [alert] = firing(database, found)
    [said] = rows(database, found, found.texts)
    assert alert.labels.items() <= said.labels.items(), "Grafana finds the texts of an alert by its labels"
    assert said.labels["title"] == "docs-bot: it fell from 0.9 to 0.4"
    assert said.labels["description"] == "docs-bot (prod): it fell from 0.9 to 0.4\nTo do: Look there."


@pytest.mark.clickhouse
def test_the_title_is_that_of_the_alert_in_alertmanager(database: Database) -> None:
    figures = json.dumps({"rule": "mean", "value": 0.42, "baseline": 0.9123})
    fell = opened("p", server_time(database) - JUST_OPENED, app="docs-bot", attributes=figures)
    database.insert("problem_events", [fell])
    found = rule(database)
    [said] = rows(database, found, found.texts)
    assert said.labels["title"] == "docs-bot: groundedness 0.912 → 0.42"
    [problem] = load_problems(database)
    assert said.labels["title"] == alert_of(problem, AlertContext()).annotations["title"]


def test_the_summary_is_that_of_the_group(database: Database) -> None:
    assert set(re.findall(r"labels\.(\w+)", rule(database).annotations["summary"])) == {"app", "environment", "type"}


@pytest.mark.clickhouse
def test_without_problems_nothing_fires(database: Database) -> None:
    assert list(rows(database, rule(database))) == []


def test_a_database_that_cannot_be_asked_changes_no_alert() -> None:
    found = rules(AlertingContext())["problems"]
    assert (found.no_data, found.on_error, found.limit) == ("OK", "KeepLast", 0)
    assert VARIABLE.findall(found.sql) == []


@pytest.mark.parametrize(
    ("problems", "urls", "are_there"),
    [(None, (), True), (None, ("https://am.example.org",), False), (True, ("https://am.example.org",), True),
     (False, (), False)],
)  # fmt: skip
def test_problems_go_one_way_unless_told_otherwise(
    problems: bool | None, urls: tuple[str, ...], *, are_there: bool
) -> None:
    context = AlertingContext(
        settings=GrafanaAlertingSettings(problems=problems), alertmanager=AlertmanagerSettings(urls=urls)
    )
    assert ("problems" in rules(context)) == are_there


def test_annotations_are_templates_over_the_labels_with_links() -> None:
    context = AlertingContext(
        grafana=GrafanaSettings(url="https://grafana.example.org/", org_id=3),
        alertmanager=AlertmanagerSettings(runbook_url="https://wiki/{kind}"),
    )
    found = rules(context)["problems"].annotations
    assert set(found) == {"title", "summary", "description", "runbook_url", "dashboard_url"}
    assert found["runbook_url"] == (
        'https://wiki/{{ $labels.problem | reReplaceAll "^Ragtide" "" | reReplaceAll "([A-Z])" "_$1" '
        '| reReplaceAll "^_" "" | toLower }}'
    )
    assert found["dashboard_url"].startswith("https://grafana.example.org/d/ragtide-problems?orgId=3")
    assert "&var-problem={{ urlquery . }}" in found["dashboard_url"]
    assert "${" not in "".join(found.values()), "Grafana would put a variable of its environment there"


def test_a_label_of_a_route_may_not_be_one_of_grafana_s() -> None:
    with pytest.raises(ConfigError, match="label grafana_folder already"):
        rules(AlertingContext(routes=(Route(owner="a", labels={"grafana_folder": "x"}),)))
