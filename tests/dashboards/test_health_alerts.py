"""Rules about ragtide itself fire for what they are about, row by row, and not without it."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from ragtide.dashboards.alerting.build import AlertingContext
from ragtide.dashboards.alerting_settings import GrafanaAlertingSettings
from ragtide.drift.jobs import server_time
from ragtide.drift.settings import LimitOverride, RuleSettings
from ragtide.drift.windows.window_metrics import WindowRow
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.alert_rules import firing, rows, rules
from tests.dashboards.macros import VARIABLE
from tests.dashboards.sample_rows import window

pytestmark = pytest.mark.clickhouse


class Progress(NamedTuple):
    """A row of `progress`."""

    lane: str
    topic: str
    partition: int
    newest: datetime
    lag: int
    heartbeat_at: datetime


class Letter(NamedTuple):
    """A row of `dead_letters`."""

    run_id: str
    topic: str
    partition: int
    offset: int
    time: datetime
    reason: str = "not_json"


class Marked(NamedTuple):
    """A row of `dead_letter_marks`."""

    run_id: str
    topic: str
    partition: int
    offset: int
    time: datetime
    state: str
    at: datetime


class Stored(NamedTuple):
    """A row of `traces`, with what the rule reads."""

    run_id: str
    app: str
    time: datetime
    trace_id: str
    version: int
    is_deleted: int = 0


def alerts(database: Database, name: str, **others: Any) -> list[dict[str, str]]:
    """Labels of the rule's alerts that fire, without those that all rules have."""
    found = firing(database, rules(AlertingContext(database=database.name, **others))[name])
    assert all(one.labels.pop("service") == "ragtide" for one in found)
    return [one.labels for one in found]


def test_a_lane_that_is_behind_is_an_alert_with_its_topic(database: Database) -> None:
    now = server_time(database)
    assert alerts(database, "lane-behind") == []
    database.insert(
        "progress",
        [
            Progress("fast", "rag.traces", 0, now - timedelta(seconds=900), 5, now),
            Progress("fast", "rag.traces", 1, now, 5, now),
            Progress("model", "rag.traces", 0, now - timedelta(seconds=900), 0, now),  # nothing waits
            Progress("model", "rag.labels", 0, now - timedelta(seconds=500), 5, now),
        ],
    )
    assert alerts(database, "lane-behind") == [{"lane": "fast", "topic": "rag.traces", "severity": "warning"}]
    stricter = GrafanaAlertingSettings(behind_s=400)
    assert len(alerts(database, "lane-behind", settings=stricter)) == 2


def test_partitions_without_a_heartbeat_are_an_alert_per_lane(database: Database) -> None:
    now = server_time(database)
    database.insert("progress", [Progress("fast", "rag.traces", 0, now, 0, now)])
    assert alerts(database, "workers-silent") == []
    silent = now - timedelta(minutes=2)
    database.insert("progress", [Progress("model", "rag.traces", n, now, 0, silent) for n in range(3)])
    [alert] = firing(database, rules(AlertingContext(database=database.name))["workers-silent"])
    assert (alert.labels["lane"], alert.labels["severity"], alert.value) == ("model", "critical", 3)


def test_as_many_dead_letters_as_open_a_problem_are_an_alert(database: Database) -> None:
    now = server_time(database)
    letters = [Letter("live", "rag.traces", 0, n, now) for n in range(30)]
    database.insert("dead_letters", [*letters[:29], *(one._replace(run_id="replayed") for one in letters)])
    assert alerts(database, "dead-letters") == []
    database.insert("dead_letters", letters)
    assert alerts(database, "dead-letters") == [{"topic": "rag.traces", "severity": "warning"}]
    dropped = [Marked(*letters[0][:5], "dropped", now)]
    database.insert("dead_letter_marks", dropped)
    assert alerts(database, "dead-letters") == [], "29 are left"
    assert len(alerts(database, "dead-letters", rules=RuleSettings(dead_letters=29))) == 1


def failures(now: datetime, evaluator: str, failed: int, applicable: int) -> WindowRow:
    start = datetime.fromtimestamp(now.timestamp() // 60 * 60 - 600, UTC)
    return window(evaluator, start, [0.0] * (applicable - failed), failed=failed, applicable=applicable)


def test_an_evaluator_that_fails_too_often_is_an_alert(database: Database) -> None:
    """4 of 50 are 8 %, above 5 %; 2 of 50 are not; 20 of 29 are too few to tell."""
    now = server_time(database)
    database.insert(
        "windows",
        [
            failures(now, "groundedness.groundedness", 4, 50),
            failures(now, "operations.latency_seconds", 2, 50),
            failures(now, "pii_leakage.passes", 20, 29),
        ],
    )
    [alert] = firing(database, rules(AlertingContext(database=database.name))["evaluator-failures"])
    assert (alert.labels["evaluator"], alert.labels["lane"], alert.value) == ("groundedness", "model", 0.08)
    own = RuleSettings(limits=(LimitOverride(evaluator="groundedness", error_limit=0.1),), error_limit=0.01)
    found = alerts(database, "evaluator-failures", rules=own)
    assert [one["evaluator"] for one in found] == ["operations"]


def test_rows_that_come_late_are_an_alert(database: Database) -> None:
    now = server_time(database)
    assert alerts(database, "rows-late") == []
    database.insert("traces", [Stored("live", "a", now - timedelta(minutes=1), f"t{n}", 0) for n in range(100)])
    assert alerts(database, "rows-late") == []
    old = [Stored("live", "b", now - timedelta(minutes=20), f"l{n}", 0) for n in range(20)]
    database.insert("traces", [one._replace(run_id="replayed") for one in old])
    database.insert("traces", [one._replace(version=1 << 16) for one in old])  # labels came, the trace was there
    assert alerts(database, "rows-late") == []
    database.insert("traces", [one._replace(app="c") for one in old])
    assert alerts(database, "rows-late") == [{"severity": "warning"}]


def test_a_full_disk_is_an_alert(database: Database) -> None:
    [row] = rows(database, rules(AlertingContext(database=database.name))["disk-full"])
    assert 0 <= row.value <= 1
    assert len(alerts(database, "disk-full", rules=RuleSettings(disk_limit=max(row.value - 0.01, 0.0001)))) == 1
    assert alerts(database, "disk-full", rules=RuleSettings(disk_limit=min(row.value + 0.01, 0.9999))) == []


def test_rules_can_be_left_out() -> None:
    names = {"jobs-stopped", "outbox-waits", "lane-behind", "workers-silent", "dead-letters", "evaluator-failures",
             "rows-late", "disk-full"}  # fmt: skip
    assert set(rules(AlertingContext())) == {*names, "problems"}
    few = GrafanaAlertingSettings(leave_out=("disk-full", "rows-late"), problems=False)
    assert set(rules(AlertingContext(settings=few))) == names - {"disk-full", "rows-late"}


def test_a_message_says_which_rule_fired() -> None:
    """A message shows descriptions."""
    for name, rule in rules(AlertingContext()).items():
        if name != "problems":
            assert rule.annotations["description"].startswith(f"{rule.annotations['summary']} ")


def test_only_the_switch_fires_without_an_answer() -> None:
    states = {name: (rule.no_data, rule.on_error) for name, rule in rules(AlertingContext()).items()}
    assert states.pop("jobs-stopped") == ("Alerting", "Alerting")
    assert {no_data for no_data, _ in states.values()} == {"OK"}
    assert not [name for name, (_, on_error) in states.items() if on_error == "Alerting"]


def test_no_query_names_a_variable() -> None:
    for rule in rules(AlertingContext()).values():
        assert [match[0] for match in VARIABLE.finditer(rule.sql) if not match[0].startswith("$__")] == []
