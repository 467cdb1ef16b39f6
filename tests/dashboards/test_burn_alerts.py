"""Burn rates in Grafana, worked by hand: a budget of 1 % over 30 days has the windows of the SRE workbook."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from ragtide.dashboards.alerting.build import AlertingContext
from ragtide.dashboards.alerting.rule import Rule
from ragtide.dashboards.alerting_settings import GrafanaAlertingSettings
from ragtide.drift.checks.error_budget import ErrorBudgets
from ragtide.drift.jobs import server_time
from ragtide.drift.notify import AlertContext, alert_of
from ragtide.drift.problems import fold_events
from ragtide.drift.routes import Route
from ragtide.drift.rule_settings import AppRules
from ragtide.drift.settings import Objective, RuleSettings
from ragtide.drift.windows.window_metrics import WindowRow
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.alert_rules import Alert, firing, rows, rules
from tests.dashboards.sample_rows import event, window

OBJECTIVE = Objective(name="few-errors", metric="operations.error", max=0.5, target=0.99, period_days=30)
ROUTES = (Route(app="help*", owner="search-team", labels={"channel": "#search"}),)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class Mark(NamedTuple):
    """A row of `watermarks`."""

    lane: str
    topic: str
    watermark: datetime


def burn_rules(database: Database, *objectives: Objective, **others: Any) -> dict[str, Rule]:
    found = RuleSettings(objectives=objectives or (OBJECTIVE,), **others)
    context = AlertingContext(database=database.name, rules=found, routes=ROUTES)
    return {name: rule for name, rule in rules(context).items() if name.startswith("burn-")}


def page(database: Database, **others: Any) -> list[Alert]:
    return list(rows(database, burn_rules(database, **others)["burn-page-few-errors"]))


def ticket(database: Database) -> list[Alert]:
    return list(rows(database, burn_rules(database)["burn-ticket-few-errors"]))


def until_of(database: Database) -> datetime:
    """The last whole hour: windows up to it are closed."""
    now = server_time(database)
    until = datetime.fromtimestamp(now.timestamp() // 3600 * 3600, UTC)
    database.insert("watermarks", [Mark("fast", "rag.traces", until + timedelta(seconds=30))])
    return until


def minutes(until: datetime, first: int, last: int, bad: int, records: int, **other: Any) -> Iterator[WindowRow]:
    """Windows of the minutes from `first` to `last` before the end."""
    for minute in range(first, last, -1):
        values = [1.0] * bad + [0.0] * (records - bad)
        yield window("operations.error", until - minute * MINUTE, values, **other)


def hours(until: datetime, first: int, last: int, bad: int, records: int, **other: Any) -> Iterator[WindowRow]:
    for hour in range(first, last, -1):
        values = [1.0] * bad + [0.0] * (records - bad)
        yield window("operations.error", until - hour * HOUR, values, size_s=3600, **other)


pytestmark = pytest.mark.clickhouse


def test_an_hour_and_five_minutes_at_twenty_times_the_rate_page(database: Database) -> None:
    """2 of 10 records bad in each of 60 minutes: a share of 0.2, 20 times the allowed 0.01, above 14.4."""
    database.insert("windows", list(minutes(until_of(database), 60, 0, 2, 10)))
    [alert] = page(database)
    assert alert.value == pytest.approx(20)
    assert alert.labels == {
        "problem": "RagtideSloBurn", "app": "helpdesk", "environment": "prod", "severity": "critical",
        "type": "runtime", "metric": "operations.error", "evaluator": "operations", "segment": "objective=few-errors",
        "owner": "search-team", "channel": "#search",
    }  # fmt: skip


def test_the_text_has_the_number_of_records_and_what_to_do(database: Database) -> None:
    """10 records in each of 60 minutes."""
    database.insert("windows", list(minutes(until_of(database), 60, 0, 2, 10)))
    rule = burn_rules(database)["burn-page-few-errors"]
    [alert], [said] = list(rows(database, rule)), list(rows(database, rule, rule.texts))
    assert alert.labels.items() <= said.labels.items(), "Grafana finds the texts of an alert by its labels"
    assert said.labels["records"] == "600"
    assert "on {{ . }} records" in rule.annotations["description"]
    assert "\nTo do: find out when the bad records began" in rule.annotations["description"]


@pytest.mark.parametrize("name", ["few-errors", "x" * 60])
def test_a_title_has_eighty_characters_at_most(database: Database, name: str) -> None:
    rule = burn_rules(database, OBJECTIVE.model_copy(update={"name": name}))[f"burn-page-{name}"]

    def title(app: str, environment: str, rate: float) -> str:
        """Put values in as Go does."""
        text = rule.annotations["title"].replace("{{ with $labels.environment }}", "").replace("{{ end }}", "")
        for variable, value in (("$labels.app", app), (".", environment), ("$values.A.Value", rate)):
            found = re.search(rf'{{{{ printf "(%[.0-9]+[sf])" {re.escape(variable)} }}}}', text)
            assert found is not None
            text = text.replace(found[0], found[1] % value)
        return text

    shown = name if len(name) <= 20 else "x" * 19 + "…"
    assert title("docs-bot", "prod", 14.4) == f"docs-bot (prod): objective {shown} burn rate 14.4"
    assert len(title("a" * 200, "e" * 200, 99_999.9)) == 80


def test_an_hour_that_is_over_pages_nobody(database: Database) -> None:
    """Bad for 55 minutes, good in the last five: 18.3 times over the hour, 0 over five minutes, 3.1 over six hours."""
    until = until_of(database)
    good = minutes(until, 360, 60, 0, 10)
    database.insert("windows", [*good, *minutes(until, 60, 5, 2, 10), *minutes(until, 5, 0, 0, 10)])
    assert [alert.value for alert in page(database)] == [0]


def test_five_minutes_alone_page_nobody(database: Database) -> None:
    """Bad in the last five minutes at 100 times the rate: 8.3 times over the hour, below 14.4; 1.4 over six hours."""
    until = until_of(database)
    database.insert("windows", [*minutes(until, 360, 5, 0, 10), *minutes(until, 5, 0, 10, 10)])
    assert [alert.value for alert in page(database)] == [0]


def test_six_hours_and_half_an_hour_at_seven_times_the_rate_page(database: Database) -> None:
    """7 of 100 records bad for six hours: 7 times the allowed rate, above 6 and below 14.4."""
    database.insert("windows", list(minutes(until_of(database), 360, 0, 7, 100)))
    assert [alert.value for alert in page(database)] == [pytest.approx(7)]


@pytest.mark.parametrize(("bad", "rates"), [(2, [2.0]), (1, [1.0]), (0, [0.0])])
def test_three_days_and_six_hours_at_the_rate_open_a_ticket(database: Database, bad: int, rates: list[float]) -> None:
    """2 of 100 records bad for three days: twice the rate. 1 of 100 is the rate itself, which the budget allows."""
    until = until_of(database)
    database.insert("windows", [*hours(until, 72, 0, bad, 100), *minutes(until, 360, 0, bad, 100)])
    found = ticket(database)
    assert [alert.value for alert in found] == [pytest.approx(rate) for rate in rates]
    assert {alert.labels["severity"] for alert in found} == {"warning"}
    assert [alert.value for alert in page(database)] == [0]


def test_windows_of_the_hour_that_runs_count_as_well(database: Database) -> None:
    """71.5 good hours and half a bad one, of minutes: 3000 of 10150 records are bad, and so are the last six hours."""
    until = until_of(database)
    database.insert("watermarks", [Mark("fast", "rag.traces", until + 30 * MINUTE)])
    database.insert("windows", [*hours(until, 71, 0, 1, 100), *minutes(until + 30 * MINUTE, 30, 0, 100, 100),
                                *minutes(until, 330, 0, 1, 100)])  # fmt: skip
    [alert] = ticket(database)
    assert alert.value == pytest.approx((71 + 3000) / (7100 + 3000) / 0.01)


@pytest.mark.parametrize(("records", "bad", "fires"), [(29, 29, False), (30, 4, False), (30, 5, True)])
def test_too_few_records_raise_no_alert(database: Database, records: int, bad: int, *, fires: bool) -> None:
    """Of fewer than 30 records, or 5 bad ones, nothing follows: 4 of 30 are 13 times the rate, 5 of 30 are 16.7."""
    until = until_of(database)
    database.insert("windows", list(minutes(until, 1, 0, bad, records)))
    assert bool([alert for alert in page(database) if alert.value > 0]) == fires


def test_an_application_s_own_sample_size_counts(database: Database) -> None:
    database.insert("windows", list(minutes(until_of(database), 60, 0, 2, 10)))
    assert [alert.value for alert in page(database, apps={"helpdesk": AppRules(min_sample=1000)})] == [0]
    assert [alert.value for alert in page(database, apps={"other": AppRules(min_sample=1000)})] == [pytest.approx(20)]


def test_without_a_watermark_or_windows_there_is_no_row(database: Database) -> None:
    assert page(database) == []
    database.insert("windows", list(minutes(server_time(database), 60, 0, 2, 10)))
    assert page(database) == []


def test_an_application_with_an_objective_of_its_own_has_that_one(database: Database) -> None:
    until = until_of(database)
    database.insert("windows", [*minutes(until, 60, 0, 2, 10), *minutes(until, 60, 0, 2, 10, app="another")])
    own = OBJECTIVE.model_copy(update={"app": "another", "target": 0.5})
    found = burn_rules(database, OBJECTIVE, own)
    assert [one.labels["app"] for one in rows(database, found["burn-page-few-errors"])] == ["helpdesk"]
    [alert] = rows(database, found["burn-page-few-errors-another"])
    assert (alert.labels["app"], alert.value) == ("another", 0)


def test_replays_segments_and_other_metrics_do_not_count(database: Database) -> None:
    until = until_of(database)
    database.insert(
        "windows",
        [
            *minutes(until, 60, 0, 0, 10),
            *minutes(until, 60, 0, 10, 10, run_id="replayed"),
            *minutes(until, 60, 0, 10, 10, segment="tenant", segment_value="acme"),
            *minutes(until, 60, 0, 10, 10, metric="operations.empty_answer"),
        ],
    )
    assert [alert.value for alert in page(database)] == [0]


def test_the_labels_are_those_of_the_problem_but_for_its_id(database: Database) -> None:
    database.insert("windows", list(minutes(until_of(database), 60, 0, 2, 10)))
    where = {"model": "", "metric": "operations.error", "segment": "objective", "segment_value": "few-errors"}
    what = {"kind": ErrorBudgets.kind, "severity": "critical", "type": "runtime"}
    opened = event("b", "b-1", "opened", 1, server_time(database), **where, **what)
    [problem] = fold_events([opened])
    wanted = dict(alert_of(problem, AlertContext(ROUTES)).labels)
    del wanted["problem_id"]
    [alert] = page(database)
    assert alert.labels == {"problem": wanted.pop("alertname"), **wanted}


def test_there_are_rules_of_enabled_objectives_of_known_metrics_only(database: Database) -> None:
    off = OBJECTIVE.model_copy(update={"enabled": False})
    assert burn_rules(database, off) == {}
    assert burn_rules(database, OBJECTIVE.model_copy(update={"metric": "no.such"})) == {}
    context = AlertingContext(
        rules=RuleSettings(objectives=(OBJECTIVE,)), settings=GrafanaAlertingSettings(burn_rates=False)
    )
    assert not [name for name in rules(context) if name.startswith("burn-")]


def test_a_quiet_budget_does_not_fire(database: Database) -> None:
    database.insert("windows", list(minutes(until_of(database), 60, 0, 0, 10)))
    assert [one for rule in burn_rules(database).values() for one in firing(database, rule)] == []
