"""The dashboard of problems and insights, on the real engine, against figures worked out by hand."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from ragtide.dashboards.build import build
from ragtide.dashboards.fleet_sql import Fleet
from ragtide.dashboards.runbook_links import runbook_panel
from ragtide.dashboards.sql import Tables
from ragtide.drift.notify.silences import SilenceRow
from ragtide.drift.problems.group_store import GroupRow
from ragtide.drift.problems.model import EventRow
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.dashboards.lint import faults, queries, shown_number
from tests.dashboards.macros import Choice, expanded
from tests.dashboards.sample_rows import APP, NOON, event, insight, window
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse

END = NOON + timedelta(hours=2)


class Message(NamedTuple):
    """A row of `outbox`, with what the dashboard reads."""

    message_id: str
    target: str
    state: str
    why: str
    attempts: int
    version: int
    written_at: datetime
    updated_at: datetime


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def since(minutes: float, **figures: Any) -> str:
    return json.dumps({"since": at(minutes).isoformat(), **figures})


def events() -> Iterator[EventRow]:
    """a is open and acknowledged, b and c are resolved, d is pending, e belongs to the system, z lies in the past."""
    figures = {"rule": "mean", "value": 0.4, "baseline": 0.8, "threshold": 0.75, "sample_size": 120, "min": 0.75}
    figures |= {"app": APP, "reasons": [], "effect_size": -0.5}
    told = {
        "description": "it fell",
        "examples": ("t1", "t2"),
        "actions": ("Look.", "Mend it."),
        "standards": ("Safe",),
    }
    opening = since(4, **figures)
    yield event("aaaa1111", "a1", "opened", 1, at(10), severity="critical", attributes=opening, **told)
    yield event("aaaa1111", "a2", "acked", 1, at(12), actor="kim", attributes='{"why": "on it"}')
    why = json.dumps({"opening": 1, "stage": "retrieval", "n_before": 10})
    yield event("aaaa1111", "a3", "explained", 1, at(14), description="Of tenant acme.", attributes=why)
    # b: detected after 2 min, resolved after 20 min
    yield event(
        "bbbb2222", "b1", "opened", 1, at(20), app="another", description="slow", kind="drift", attributes=since(18)
    )
    yield event("bbbb2222", "b2", "resolved", 1, at(40), app="another", description="slow", kind="drift")
    # c: detected after 6 min, resolved after 60 min
    yield event("cccc3333", "c1", "opened", 1, at(30), environment="staging", description="c", attributes=since(24))
    yield event("cccc3333", "c2", "resolved", 1, at(90), environment="staging", description="c")
    yield event("dddd4444", "d1", "pending", 1, at(50), type="privacy", description="d")
    yield event("eeee5555", "e1", "opened", 1, at(60), app="", environment="", model="", aspect="storage",
                metric="disk", type="operations", severity="info", description="full", kind="threshold")  # fmt: skip
    yield event("zzzz9999", "z1", "opened", 1, at(-600), description="z")
    yield event("zzzz9999", "z2", "resolved", 1, at(-500), description="z")


class Shown:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.document = build(load(), database=database.name)["problems"]
        self.queries = dict(queries(self.document))

    def rows(
        self, where: str, start: datetime = NOON, end: datetime = END, interval_s: int = 60, **other: Choice
    ) -> list[dict[str, Any]]:
        names = ("app", "environment", "state", "severity", "type", "kind", "standard")
        chosen: dict[str, Choice] = {name: ["$__all"] for name in names}
        chosen |= {"problem": "", **other}
        return self.database.rows(expanded(self.queries[where], start, end, interval_s, chosen))

    def value(self, where: str, **other: Any) -> Any:
        [row] = self.rows(where, **other)
        return shown_number(self.document, where, row)


@pytest.fixture(scope="module")
def shown(clickhouse_server: EmbeddedClickHouse) -> Iterator[Shown]:
    with fresh_database(clickhouse_server, windows_minute_days=100_000, outbox_days=100_000) as database:
        database.insert("problem_events", list(events()))
        database.insert("insights", [insight(), insight()._replace(insight_id="j", app="another")])
        full = "groundedness.groundedness"
        made = [window(full, at(minute), [0.25, 0.75]) for minute in range(0, 10)]
        made += [window(full, at(minute), [0.5, 0.5, 0.5], environment="staging") for minute in range(0, 10)]
        database.insert("windows", made)
        messages = [
            Message("m1", "grafana", "sent", "", 1, 1, at(10), at(11)),
            Message("m2", "grafana", "sent", "", 1, 1, at(20), at(21)),
            Message("m3", "grafana", "pending", "503 Busy", 4, 1, at(30), at(50)),
            Message("m4", "grafana", "sent", "", 1, 1, at(-600), at(-590)),
        ]
        database.insert("outbox", messages)
        yield Shown(database)


def test_every_query_gives_something(shown: Shown) -> None:
    assert list(faults(shown.document)) == []
    for where in shown.queries:
        assert shown.rows(where), where


def test_open_problems_are_counted_at_the_end_of_the_range(shown: Shown) -> None:
    assert shown.value("stat Open, critical A") == 1
    assert shown.value("stat Open, warning A") == 0
    assert shown.value("stat Open, info A") == 1
    assert shown.value("stat Open, warning A", end=at(35)) == 2  # b and c were open then
    assert shown.value("stat Unattended A") == 1  # the disk: a is acknowledged
    assert shown.value("stat Open, critical A", app=["another"]) == 0
    assert shown.value("stat Open, info A", app=["another"]) == 1  # the system's stand beside every application's


def test_symptoms_are_counted_with_their_parent_or_where_it_is_not_shown(clickhouse_server: EmbeddedClickHouse) -> None:
    with fresh_database(clickhouse_server) as database:
        database.insert(
            "problem_events",
            [
                event("parent", "1", "opened", 1, at(0)),
                event("near", "2", "opened", 1, at(0)),
                event("far", "3", "opened", 1, at(0), app="another"),
            ],
        )
        database.insert("problem_groups", [GroupRow(one, 1, "parent", 1, 1) for one in ("near", "far")])
        shown = Shown(database)
        for stat in ("stat Open, warning A", "stat Unattended A"):
            assert shown.value(stat) == 1
            assert shown.value(stat, app=["another"]) == 1
        listed = {row["problem_id"]: row["symptom of"] for row in shown.rows("table Problems A")}
        assert listed == {"parent": "", "near": "parent", "far": "parent"}
        fleet = Fleet(Tables(database.name), (), {})
        counted = fleet.by_owner(), fleet.open_problems()
        chosen: dict[str, Choice] = {"run": "live", "environment": ["$__all"]}
        (owners,), (warnings,) = (database.rows(expanded(sql, NOON, END, 60, chosen)) for sql in counted)
        assert (owners["warning"], warnings["warning"]) == (1, 1)
        rows = database.rows(expanded(fleet.applications(), NOON, END, 60, chosen))
        assert {row["app"]: row["warning"] for row in rows} == {"another": 1, APP: 1}


def test_a_row_links_to_the_runbook_of_the_kind_that_opened_the_problem_as_its_alert_does(
    clickhouse_server: EmbeddedClickHouse,
) -> None:
    with fresh_database(clickhouse_server) as database:
        database.insert(
            "problem_events",
            [
                event("two", "1", "pending", 1, at(0), kind="threshold"),
                event("two", "2", "opened", 1, at(1), kind="drift"),
                event("waits", "3", "pending", 1, at(0), kind="coverage"),
            ],
        )
        listed = {row["problem_id"]: row["runbook"] for row in Shown(database).rows("table Problems A")}
    assert listed == {"two": runbook_panel("drift"), "waits": runbook_panel("coverage")}


def test_who_silenced_a_problem_in_alertmanager_is_shown_until_the_silence_ends(
    clickhouse_server: EmbeddedClickHouse,
) -> None:
    now = datetime.now(UTC)
    with fresh_database(clickhouse_server) as database:
        database.insert("problem_events", [event(one, one, "opened", 1, at(0)) for one in ("over", "silenced")])
        kim = SilenceRow("http://am", "silenced", "s1", "kim", "known", at(0), now + timedelta(hours=1), 0, 1)
        ended = kim._replace(problem_id="over", silence_id="s2", ends_at=now - timedelta(minutes=1))
        lifted = kim._replace(problem_id="over", silence_id="s3", is_deleted=1)
        database.insert("alert_silences", [kim, ended, lifted])
        shown = Shown(database)
        handled = {row["problem_id"]: row["handled"] for row in shown.rows("table Problems A")}
        until = f"kim until {now + timedelta(hours=1):%Y-%m-%d %H:%M}"
        assert handled == {"over": "", "silenced": f"silenced by {until}"}
        assert shown.value("stat Unattended A") == 1
        facts = {row["name"]: row["value"] for row in shown.rows("table Facts A", problem="silenced")}
        assert facts["silenced in Alertmanager by"] == until
        chosen: dict[str, Choice] = {"run": "live", "environment": ["$__all"]}
        sql = Fleet(Tables(database.name), (), {}).by_owner()
        [owner] = database.rows(expanded(sql, NOON, END, 60, chosen))
        assert (owner["warning"], owner["not taken"]) == (2, 1)


def test_problems_are_listed_by_state_and_severity_and_filtered(shown: Shown) -> None:
    def ids(**chosen: Any) -> list[str]:
        return [row["problem_id"][:1] for row in shown.rows("table Problems A", **chosen)]

    assert ids() == ["a", "e", "d", "c", "b"]
    assert ids(state=["open"]) == ["a", "e"]
    assert ids(severity=["critical"]) == ["a"]
    assert ids(type=["privacy"]) == ["d"]
    assert ids(kind=["drift"]) == ["b"]
    assert ids(standard=["Safe"]) == ["a"]
    assert ids(environment=["staging"]) == ["e", "c"]
    assert ids(start=at(-700), end=at(-550)) == ["z"]
    first = shown.rows("table Problems A")[0]
    assert (first["handled"], first["standards"], first["found by"]) == ("acknowledged by kim", "Safe", "threshold")
    lasted = {row["problem_id"][:1]: row["lasted"] for row in shown.rows("table Problems A")}
    assert (lasted["b"], lasted["c"], lasted["d"]) == (20 * 60, 60 * 60, None)


def test_the_life_of_each_problem_is_a_line_of_states(shown: Shown) -> None:
    found = shown.rows("state-timeline Life cycle A", interval_s=600)
    states = {name: [] for name in "abcde"}  # type: dict[str, list[Any]]
    for row in found:
        states[row["id"][:1]].append(row["state"])
    assert len(found) == 5 * 13  # every ten minutes from noon to two
    assert states["a"] == [None] + [3] * 12
    assert states["b"] == [None, None, 2, 2] + [None] * 9
    assert states["c"] == [None] * 3 + [2] * 6 + [None] * 4
    assert states["d"] == [None] * 5 + [0] * 8
    assert {row["problem"] for row in found if row["id"][:1] == "e"} == {"disk"}


def test_times_to_detect_and_to_resolve(shown: Shown) -> None:
    # detected after 6, 2 and 6 minutes; resolved after 20 and 60; of the disk the beginning is not known
    assert shown.value("stat Time to detect A") == 360
    assert shown.value("stat Time to resolve A", app=["another"]) == 20 * 60
    by = {(row["type"], row["severity"]): row for row in shown.rows("table Time to detect and to resolve A")}
    warning = by["accuracy", "warning"]
    assert (warning["problems"], warning["detected"], warning["resolved"]) == (2, 2, 2)
    assert (warning["detect, 90 %"], warning["resolve, 90 %"]) == (360, 3600)
    assert (by["operations", "info"]["detected"], by["operations", "info"]["detect, median"]) == (0, None)
    days = shown.rows("timeseries Opened and resolved per day A", start=at(-720))
    assert [(row["opened"], row["resolved"]) for row in days] == [(5, 3)]


def test_the_chosen_problem_is_the_worst_or_the_named_one(shown: Shown) -> None:
    facts = {row["name"]: row["value"] for row in shown.rows("table Facts A")}
    assert (facts["problem"], facts["began (UTC)"]) == ("aaaa1111", "2026-03-01 12:04:00")
    assert facts["acknowledged by"] == "kim"
    named = {row["name"]: row["value"] for row in shown.rows("table Facts A", problem="bbbb", app=[APP])}
    assert (named["problem"], named["state"]) == ("bbbb2222", "resolved")
    assert shown.rows("table Facts A", problem="nobody") == []
    told = [(row["about"], row["text"]) for row in shown.rows("table What happened, and what to do A")]
    assert told == [
        ("what happened", "it fell"),
        ("likely cause", "Of tenant acme."),
        ("what to do, 1", "Look."),
        ("what to do, 2", "Mend it."),
    ]
    log = [(row["event"], row["by"], row["message"]) for row in shown.rows("table Event log A")]
    assert log == [("explained", "", "Of tenant acme."), ("acked", "kim", "on it"), ("opened", "", "it fell")]
    examples = shown.rows("table Example traces A")
    assert [row["trace"] for row in examples] == ["t1", "t2"]
    kept = f"from={1000 * int(NOON.timestamp())}&to={1000 * int(END.timestamp())}"
    assert examples[0]["trace_link"] == f"/d/ragtide-trace?var-app=helpdesk&var-run=live&var-trace_id=t1&{kept}"
    assert {row["figure"]: row["value"] for row in shown.rows("table Likely cause in detail A")} == {
        "n before": "10", "stage": "retrieval",
    }  # fmt: skip


def test_evidence_comes_key_figures_first_without_what_is_shown_elsewhere(shown: Shown) -> None:
    found = [(row["figure"], row["value"]) for row in shown.rows("table Evidence A")]
    assert found == [
        ("value", "0.4"), ("baseline", "0.8"), ("threshold", "0.75"), ("sample size", "120"), ("effect size", "-0.5"),
        ("min", "0.75"), ("since", at(4).isoformat()), ("rule", "mean"),
    ]  # fmt: skip


def test_the_figure_is_what_the_rule_judged(shown: Shown) -> None:
    first = shown.rows("timeseries Its metric A")[0]
    assert first == {"time": NOON, "value": 0.5, "threshold": 0.75, "baseline": 0.8}
    assert shown.rows("timeseries Its metric B")[0] == {"time": NOON, "records": 2}
    assert len(shown.rows("timeseries Its metric A", interval_s=120)) == 5
    share = since(4, rule="share", min=0.75, limit=0.05)
    shown.database.insert(
        "problem_events", [event("ffff6666", "f1", "opened", 1, at(70), attributes=share, description="f")]
    )
    by_share = shown.rows("timeseries Its metric A", problem="ffff6666")[0]
    assert (by_share["value"], by_share["threshold"]) == (0.5, 0.05)  # of 0.25 and 0.75, one is below 0.75
    shown.database.command(
        "ALTER TABLE problem_events DELETE WHERE problem_id = 'ffff6666' SETTINGS mutations_sync = 1"
    )


def test_insights_and_notifications(shown: Shown) -> None:
    assert len(shown.rows("table Insights A")) == 2
    [one] = shown.rows("table Insights A", app=[APP])
    assert (one["worst trace"], one["number of examples"]) == ("t9", 1)
    waiting, sent = shown.rows("table Notifications A")
    assert (waiting["state"], waiting["messages"], waiting["attempts"], waiting["last error"]) == (
        "pending",
        1,
        4,
        "503 Busy",
    )
    assert (sent["state"], sent["messages"]) == ("sent", 2)


def test_values_to_choose_from(shown: Shown) -> None:
    def labels(name: str) -> list[str]:
        return [row["label"] for row in shown.rows(f"variable {name}")]

    assert labels("app") == ["another", APP]
    assert labels("kind") == ["drift", "threshold"]
    assert labels("standard") == ["Safe"]
    assert labels("type") == ["accuracy", "operations", "privacy"]
