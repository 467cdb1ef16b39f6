"""What webhooks post, in which order, and what happens when a receiver fails: the real engine and real HTTP."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from typing import Any

import jsonschema
import pytest

from ragtide.drift.jobs import server_time
from ragtide.drift.leadership import LeaderRow
from ragtide.drift.notify.delivery import DeliveryJob, DeliveryResult, deliver
from ragtide.drift.notify.messages import enqueue
from ragtide.drift.notify.notification import notification_schema
from ragtide.drift.notify.webhooks import WebhookChannel
from ragtide.drift.problems.model import problem_id
from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.sample_rows import APP, NOON, event
from tests.drift.notify.delivery_job import OPENED, REOPENED, RESOLVED
from tests.drift.notify.webhook_site import Site, insight, target, types, webhook
from tests.infra.webhook_receiver import Answer, receiving, verified

pytestmark = pytest.mark.clickhouse
KIND_OPENED = OPENED._replace(
    event_id="j1", event="kind_opened", at=NOON + timedelta(minutes=1), kind="drift", description="it drifts"
)


@pytest.fixture
def site(database: Database) -> Iterator[Site]:
    with receiving() as receiver:
        yield Site(database, receiver)


def test_a_problem_is_a_signed_cloud_event_of_the_schema(site: Site) -> None:
    figures = {"since": (NOON - timedelta(minutes=3)).isoformat(), "value": 0.2, "baseline": 0.9, "sample_size": 40}
    site.happened(OPENED._replace(attributes=json.dumps(figures), description="Größe < 1"))
    assert site.run() == DeliveryResult(opened=1)
    (call,) = site.receiver.calls
    assert verified(call)
    assert call.headers["webhook-id"] == call.event["id"] == "e1"
    jsonschema.Draft202012Validator(notification_schema()).validate(call.event)
    said, data = call.event, call.event["data"]
    assert (said["specversion"], said["type"], said["source"]) == ("1.0", "ragtide.problem.opened", "/ragtide")
    assert (said["time"], said["subject"]) == ("2026-03-01T12:00:00.000Z", "problems/p1")
    assert said["dataschema"] == notification_schema()["$id"]
    assert data["description"] == "Größe < 1"
    assert (data["state"], data["severity"], data["kinds"]) == ("open", "critical", ["threshold"])
    assert (data["value"], data["baseline"], data["threshold"], data["sample_size"]) == (0.2, 0.9, None, 40)
    assert (data["onset"], data["resolved_at"]) == ("2026-03-01T11:57:00Z", None)
    assert (data["owner"], data["labels"]) == ("search-team", {"channel": "#search"})
    assert (data["evaluator"], data["group"]) == ("groundedness", f"{APP}/prod/m1/accuracy")


def test_the_life_of_a_problem_is_posted_in_order_and_once(site: Site) -> None:
    site.happened(OPENED, KIND_OPENED, RESOLVED._replace(at=NOON + timedelta(minutes=9)))
    site.run()
    site.happened(REOPENED)
    site.run()
    assert site.receiver.told == [
        ("problem.opened", "problems/p1"), ("problem.resolved", "problems/p1"), ("problem.opened", "problems/p1"),
    ]  # fmt: skip
    assert [call.event["data"]["state"] for call in site.receiver.calls] == ["open", "resolved", "open"]
    assert site.receiver.calls[1].event["data"]["resolved_at"] == "2026-03-01T12:09:00Z"
    assert site.run() == site.run(epoch=2) == DeliveryResult()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"app": "help*"}, 1),
        ({"app": "help"}, 0),
        ({"app": "helpdes?", "metric": "groundedness.*", "type": "accuracy", "environment": "prod"}, 1),
        ({"metric": "toxicity.*"}, 0),
        ({"environment": "staging"}, 0),
        ({"type": "priv*"}, 0),
        ({"severities": ["critical"]}, 1),
        ({"severities": ["info", "warning"]}, 0),
        ({"events": ["problem.resolved"]}, 0),
    ],
)
def test_filters_choose(site: Site, settings: dict[str, Any], told: int) -> None:
    site.happened(OPENED)
    assert site.run(**settings) == DeliveryResult(opened=told)
    assert len(site.receiver.calls) == told


def test_patterns_match_whole_hostile_names(site: Site) -> None:
    name = "a.b'c\\d{e}\nf"
    site.happened(OPENED._replace(app=name), OPENED._replace(app=f"{name}!", problem_id="p2", event_id="f1"))
    assert site.run(app="a.b'c\\d{e}*f").opened == 1
    assert site.receiver.calls[0].event["data"]["app"] == name


def test_what_becomes_severe_enough_later_is_opened_then(site: Site) -> None:
    lenient = OPENED._replace(severity="warning")
    site.happened(lenient)
    hook: dict[str, Any] = {"severities": ["critical"], "events": ["problem.opened", "problem.resolved"]}
    assert site.run(**hook) == DeliveryResult()
    worse = lenient._replace(event_id="u2", event="updated", at=NOON + timedelta(minutes=5))
    site.happened(worse, worse._replace(event_id="u3", severity="critical", at=NOON + timedelta(minutes=10)))
    assert site.run(**hook) == DeliveryResult(opened=1)
    site.happened(worse._replace(event_id="u4", severity="warning", at=NOON + timedelta(minutes=15)))
    site.run(**hook)
    site.happened(RESOLVED._replace(severity="warning", at=NOON + timedelta(minutes=20)))
    site.run(**hook)
    assert types(site.receiver.told) == ["problem.opened", "problem.resolved"]
    assert site.receiver.calls[0].event["data"]["severity"] == "critical"


def test_changes_of_severity_are_updates_and_other_reports_are_not(site: Site) -> None:
    site.happened(OPENED)
    site.run()
    same = OPENED._replace(event_id="u1", event="updated", at=NOON + timedelta(minutes=5))
    site.happened(same, same._replace(event_id="u2", severity="info", at=NOON + timedelta(minutes=10)))
    site.run()
    assert types(site.receiver.told) == ["problem.opened", "problem.updated"]
    assert site.receiver.calls[1].event["data"]["severity"] == "info"


def test_muted_problems_and_symptoms_wait_as_they_do_for_grafana(site: Site) -> None:
    whole = OPENED._replace(problem_id=problem_id(APP, "prod", "m1", "level", OPENED.metric))
    tenant = OPENED._replace(problem_id="t1", event_id="t1", segment="tenant", segment_value="acme")
    muted = OPENED._replace(problem_id="p2", event_id="m1", metric="toxicity.toxicity", type="fairness")
    until = json.dumps({"until": (datetime.now(UTC) + timedelta(hours=1)).isoformat()})
    mute = muted._replace(event="muted", event_id="m2", actor="kim", attributes=until, at=NOON + timedelta(seconds=1))
    site.happened(whole, tenant, muted, mute)
    assert site.run() == DeliveryResult(opened=1)
    assert site.receiver.told == [("problem.opened", f"problems/{whole.problem_id}")]


def test_insights_are_posted_to_those_who_ask_and_withdrawn(site: Site) -> None:
    every: dict[str, Any] = {"events": ["insight.found", "insight.withdrawn"]}
    site.found(insight("i1"), insight("i2", app="another"))
    assert site.run() == DeliveryResult()
    assert site.run(**every, app=APP) == DeliveryResult(opened=1)
    site.found(insight("i1", epoch=2, description="helpdesk: 41 of 50 failed."))  # the same, found again
    assert site.run(**every, app=APP) == DeliveryResult()
    for epoch, withdrawn in ((3, 1), (4, 0), (5, 1)):
        site.found(insight("i1", epoch=epoch, withdrawn=withdrawn))
        site.run(**every, app=APP)
        site.run(**every, app=APP)
    assert types(site.receiver.told) == ["insight.found", "insight.withdrawn"] * 2
    assert len({call.event["id"] for call in site.receiver.calls}) == 4
    for call in site.receiver.calls:
        jsonschema.Draft202012Validator(notification_schema()).validate(call.event)
    assert site.receiver.calls[0].event["data"]["figures"] == {"share": 0.8}


def test_what_is_refused_holds_nothing_back_and_keeps_its_reason(site: Site) -> None:
    site.happened(OPENED, OPENED._replace(problem_id="p2", event_id="f1", at=NOON + timedelta(seconds=1)), RESOLVED)
    site.receiver.script.append(Answer(413, b"too large"))
    assert site.run() == DeliveryResult(opened=1, closed=1, refused=1)
    [row] = site.database.rows("SELECT message_id, why FROM outbox FINAL WHERE state = 'refused'")
    assert row["message_id"] == "webhook:pager:e1"
    assert "answered 413: too large" in row["why"]
    assert site.run() == DeliveryResult()


def test_what_fails_for_its_content_holds_its_own_problem_back_alone(site: Site) -> None:
    site.happened(OPENED, RESOLVED, OPENED._replace(problem_id="p2", event_id="f1", at=NOON + timedelta(seconds=1)))
    site.receiver.script.append(Answer(500, b"<h1>Internal error</h1>"))
    assert site.run() == DeliveryResult(opened=1, failed=["webhook:pager:e1"])
    assert site.run() == DeliveryResult(opened=1, closed=1)
    assert [call.event["id"] for call in site.receiver.calls] == ["e1", "f1", "e1", "e3"]
    first, again = (call for call in site.receiver.calls if call.event["id"] == "e1")
    assert first.body == again.body


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(None), Transient),
        (Answer(503), Transient),
        (Answer(302, headers={"Location": "http://a.example/"}), ConfigError),
        (Answer(401), ConfigError),
    ],
)
def test_a_receiver_that_is_away_gets_everything_in_order_afterwards(
    site: Site, answer: Answer, error: type[Exception]
) -> None:
    site.happened(OPENED, RESOLVED, REOPENED)
    site.receiver.script.append(answer)
    with pytest.raises(error):
        site.run()
    assert len(site.receiver.calls) == 1
    assert site.run() == DeliveryResult(opened=2, closed=1)
    assert [call.event["id"] for call in site.receiver.calls] == ["e1", "e1", "e3", "e4"]


def test_a_receiver_that_asks_for_time_gets_it_and_another_is_not_held_back(site: Site) -> None:
    began = server_time(site.database)
    with receiving() as other:
        jobs = [
            DeliveryJob(
                site.database, target(webhook(url, name=name)), lambda _: None, lambda: chain([10.0], repeat(20.0))
            )
            for name, url in (("slow", site.receiver.url), ("quick", other.url))
        ]
        site.happened(OPENED)
        site.receiver.script.append(Answer(429, headers={"Retry-After": "50"}))
        for second in (0, 20, 40):
            with pytest.raises(Transient):
                jobs[0].run(1, began + timedelta(seconds=second))
            jobs[1].run(1, began + timedelta(seconds=second))
        assert (len(site.receiver.calls), len(other.calls)) == (1, 1)
        assert jobs[0].run(1, began + timedelta(seconds=60)) == DeliveryResult(opened=1)
        assert site.receiver.calls[0].event["id"] == site.receiver.calls[1].event["id"] == "e1"


def test_what_fails_for_days_is_given_up_while_the_receiver_fails(site: Site) -> None:
    site.happened(OPENED, OPENED._replace(problem_id="p2", event_id="f1", at=NOON + timedelta(seconds=1)))
    enqueue(site.database, WebhookChannel(webhook(site.receiver.url)), 1, datetime.now(UTC))
    site.receiver.script += [Answer(503)] * 2
    with pytest.raises(Transient):
        site.run(days=2.9)
    assert {state for _, state in site.states()} == {"pending"}
    with pytest.raises(Transient):
        site.run(days=3.1)
    assert {state for _, state in site.states()} == {"gave_up"}
    assert site.run(days=3.2) == DeliveryResult()


def test_what_waited_because_no_job_ran_is_not_given_up(site: Site) -> None:
    site.happened(OPENED)
    enqueue(site.database, WebhookChannel(webhook(site.receiver.url)), 1, datetime.now(UTC))
    assert site.run(days=5) == DeliveryResult(opened=1)


def test_a_leader_whose_time_is_over_sends_nothing(site: Site) -> None:
    site.happened(OPENED)
    site.database.insert("leaders", [LeaderRow(1, "old"), LeaderRow(2, "new")])
    assert site.run(epoch=1) == DeliveryResult()
    assert site.receiver.calls == []
    assert site.run(epoch=2) == DeliveryResult(opened=1)


def test_two_leaders_in_turn_post_each_message_once(site: Site) -> None:
    for turn in range(6):
        name = f"p{turn}"
        site.happened(OPENED._replace(problem_id=name, event_id=name, at=NOON + timedelta(minutes=turn)))
        site.run(epoch=1 + turn % 2)
    assert [call.event["id"] for call in site.receiver.calls] == [f"p{turn}" for turn in range(6)]


def test_a_new_webhook_gets_what_still_holds_of_years(site: Site) -> None:
    site.happened(OPENED, RESOLVED, OPENED._replace(problem_id="p2", event_id="f1"))
    assert site.run(days=8) == DeliveryResult(opened=1)
    assert site.receiver.told == [("problem.opened", "problems/p2")]


def test_a_storm_of_symptoms_is_one_message(site: Site) -> None:
    whole = OPENED._replace(problem_id=problem_id(APP, "prod", "m1", "level", OPENED.metric))
    symptoms = [
        event(f"s{n}", f"s{n}", "opened", 1, NOON, segment="tenant", segment_value=f"tenant-{n}") for n in range(300)
    ]
    site.happened(whole, *symptoms)
    assert deliver(site.database, target(webhook(site.receiver.url)), 1, lambda: datetime.now(UTC)) == DeliveryResult(
        opened=1
    )
