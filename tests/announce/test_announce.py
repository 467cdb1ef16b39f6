"""Problems in Grafana, once each, whatever happens on the way: the real engine, real HTTP, the contract server."""

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drift import outbox
from drift.announce import Announced, announce
from drift.leadership import LeaderRow
from drift.problems import EventRow
from evaluators.errors import ConfigError, Transient
from sinks.clickhouse.database import Database
from sinks.grafana import GrafanaGateway
from tests.contracts.grafana_server import Fault, GrafanaServer
from tests.dashboards.stored import APP, NOON, event

pytestmark = pytest.mark.clickhouse

OPENED = event(
    "p1", "e1", "opened", 1, NOON, severity="high", description="it fell from 0.9 to 0.2", actions=("Look there.",),
    examples=("t1", "t2"), attributes=json.dumps({"since": (NOON - timedelta(minutes=3)).isoformat()}),
)  # fmt: skip
UPDATED = OPENED._replace(event_id="e2", event="updated", at=NOON + timedelta(minutes=1))
RESOLVED = OPENED._replace(event_id="e3", event="resolved", at=NOON + timedelta(minutes=9), description="it is back")
REOPENED = OPENED._replace(
    event_id="e4", event="reopened", at=NOON + timedelta(minutes=12), description="it fell again"
)
RESOLVED_AGAIN = RESOLVED._replace(event_id="e5", at=NOON + timedelta(minutes=20))


class Killed(BaseException):
    """The process ends here."""


class Job:
    """The announcing job as its leaders run it."""

    def __init__(self, database: Database, grafana: GrafanaServer) -> None:
        self.database, self.grafana = database, grafana

    def happened(self, *events: EventRow) -> None:
        self.database.insert("problem_events", list(events))

    def run(self, epoch: int = 1) -> Announced:
        gateway = GrafanaGateway(self.grafana.settings(), sleep=lambda _: None)
        return announce(self.database, gateway, epoch, lambda: datetime.now(UTC))

    def annotations(self) -> list[dict[str, Any]]:
        return list(self.grafana.state.annotations.values())

    def states(self) -> dict[str, str]:
        rows = self.database.rows("SELECT message_id, state FROM outbox FINAL ORDER BY message_id")
        return {row["message_id"]: row["state"] for row in rows}


@pytest.fixture
def job(database: Database, grafana: GrafanaServer) -> Job:
    return Job(database, grafana)


def ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def test_an_open_problem_is_a_region_from_its_beginning(job: Job) -> None:
    job.happened(OPENED, UPDATED)
    assert job.run() == Announced(opened=1)
    (shown,) = job.annotations()
    assert (shown["time"], shown["timeEnd"]) == (ms(NOON - timedelta(minutes=3)), ms(NOON))
    assert shown["text"] == "high accuracy: it fell from 0.9 to 0.2\nLook there.\nExamples: t1, t2"
    assert shown["tags"] == [
        "ragwatch", "problem", f"app:{APP}", "environment:prod", "metric:groundedness.groundedness", "type:accuracy",
        "severity:high", "id:p1:1",
    ]  # fmt: skip


def test_a_resolved_problem_is_closed(job: Job) -> None:
    job.happened(OPENED)
    job.run()
    job.happened(RESOLVED)
    assert job.run() == Announced(closed=1)
    (shown,) = job.annotations()
    assert (shown["time"], shown["timeEnd"]) == (ms(NOON - timedelta(minutes=3)), ms(RESOLVED.at))
    assert shown["tags"][-2:] == ["id:p1:1", "resolved"]
    assert shown["text"].startswith("high accuracy: it is back")


def test_running_again_sends_nothing(job: Job) -> None:
    job.happened(OPENED, RESOLVED)
    assert job.run() == Announced(opened=1, closed=1)
    calls = len(job.grafana.calls)
    assert job.run() == job.run(epoch=2) == Announced()
    assert len(job.grafana.calls) == calls
    assert job.states() == {"grafana:e1": "sent", "grafana:e3": "sent"}


def test_back_within_the_flap_interval_it_is_the_same_annotation(job: Job) -> None:
    job.happened(OPENED, RESOLVED, REOPENED)
    assert job.run() == Announced(opened=2, closed=1)
    (shown,) = job.annotations()
    assert "resolved" not in shown["tags"]
    assert shown["text"].startswith("high accuracy: it fell again")
    job.happened(RESOLVED_AGAIN)
    job.run()
    (shown,) = job.annotations()
    assert (shown["tags"][-1], shown["timeEnd"]) == ("resolved", ms(RESOLVED_AGAIN.at))


def test_another_episode_is_another_annotation(job: Job) -> None:
    job.happened(OPENED, RESOLVED, OPENED._replace(event_id="e9", episode=2, at=NOON + timedelta(hours=5)))
    job.run()
    assert [(each["tags"][7:]) for each in job.annotations()] == [["id:p1:1", "resolved"], ["id:p1:2"]]


def test_a_problem_without_extent_is_still_a_region(job: Job) -> None:
    job.happened(OPENED._replace(attributes=""))
    job.run()
    (shown,) = job.annotations()
    assert (shown["time"], shown["timeEnd"]) == (ms(NOON), ms(NOON) + 1000)


def test_a_muted_problem_is_not_announced_until_it_is_unmuted(job: Job) -> None:
    job.happened(OPENED, OPENED._replace(event_id="m1", event="muted", actor="kim", at=NOON + timedelta(seconds=1)))
    assert job.run() == Announced()
    job.happened(OPENED._replace(event_id="m2", event="unmuted", actor="kim", at=NOON + timedelta(seconds=2)))
    assert job.run() == Announced(opened=1)


@pytest.mark.parametrize(
    "fault", [Fault("POST", "/api/annotations", after=True), Fault("POST", "/api/annotations", 500)]
)
def test_where_nobody_knows_whether_it_arrived_it_is_there_once(job: Job, fault: Fault) -> None:
    job.happened(OPENED)
    job.grafana.faults.append(fault)
    with pytest.raises(Transient):
        job.run()
    assert job.states() == {"grafana:e1": "pending"}
    assert job.run() == Announced(opened=1)
    assert len(job.annotations()) == 1


def test_killed_between_sending_and_marking_it_is_there_once(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.happened(OPENED)

    def killed(*_: object, **named: object) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(outbox, "mark", killed)
        with pytest.raises(Killed):
            job.run(epoch=1)
    assert (len(job.annotations()), job.states()) == (1, {"grafana:e1": "pending"})
    assert job.run(epoch=2) == Announced(opened=1)
    assert (len(job.annotations()), job.states()) == (1, {"grafana:e1": "sent"})


def test_grafana_away_for_a_while_gets_everything_in_order_afterwards(job: Job) -> None:
    job.happened(OPENED)
    away = Fault("GET", "/api/annotations", 502, b"<h1>Bad gateway</h1>", times=999)
    job.grafana.faults.append(away)
    for _ in range(3):
        with pytest.raises(Transient):
            job.run()
    job.happened(RESOLVED, REOPENED)
    with pytest.raises(Transient):
        job.run()
    assert job.annotations() == []
    attempts = job.database.rows("SELECT attempts FROM outbox FINAL WHERE message_id = 'grafana:e1'")
    assert attempts == [{"attempts": 4}]
    away.times = 0
    assert job.run() == Announced(opened=2, closed=1)
    (shown,) = job.annotations()
    assert "resolved" not in shown["tags"]


def test_a_leader_whose_time_is_over_sends_nothing(job: Job) -> None:
    job.happened(OPENED)
    job.database.insert("leaders", [LeaderRow(1, "old"), LeaderRow(2, "new")])
    assert job.run(epoch=1) == Announced()
    assert job.annotations() == []
    assert job.run(epoch=2) == Announced(opened=1)


def test_two_leaders_at_the_same_moment_leave_one_annotation(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one has looked and found nothing; then the new one adds; then the old one adds as well."""
    job.happened(OPENED)
    annotate = GrafanaGateway.annotate

    def late(gateway: GrafanaGateway, **what: Any) -> int:
        monkeypatch.setattr(GrafanaGateway, "annotate", annotate)
        assert job.run(epoch=2) == Announced(opened=1)
        return annotate(gateway, **what)

    monkeypatch.setattr(GrafanaGateway, "annotate", late)
    job.run(epoch=1)
    assert len(job.grafana.made("POST", "/api/annotations")) == 2
    assert len(job.annotations()) == 1
    assert job.states() == {"grafana:e1": "sent"}


def test_what_a_person_took_away_stays_away(job: Job) -> None:
    job.happened(OPENED)
    job.run()
    job.grafana.state.annotations.clear()
    job.happened(RESOLVED)
    assert job.run() == Announced(closed=1)
    assert job.annotations() == []


def test_what_grafana_refuses_holds_nothing_else_back(job: Job) -> None:
    job.happened(OPENED, OPENED._replace(problem_id="p2", event_id="f1", at=NOON + timedelta(seconds=1)))
    job.grafana.faults.append(Fault("POST", "/api/annotations", 400))
    assert job.run() == Announced(opened=1, refused=1)
    assert job.states() == {"grafana:e1": "refused", "grafana:f1": "sent"}
    [set_aside] = job.database.rows("SELECT why FROM outbox FINAL WHERE state = 'refused'")
    assert "POST /api/annotations with 400: out of order" in set_aside["why"]
    assert job.run() == Announced()


def test_a_refused_token_says_what_to_do(job: Job) -> None:
    job.happened(OPENED)
    job.grafana.faults.append(Fault("GET", "/api/annotations", 401))
    with pytest.raises(ConfigError, match=r"grafana\.token"):
        job.run()
    assert job.run() == Announced(opened=1)


def test_names_that_applications_choose_are_text_and_not_too_long(job: Job) -> None:
    bad = "<img src=x onerror=alert(1)>" + "ä" * 200
    job.happened(OPENED._replace(app=bad, environment=bad, metric=bad, description=bad))
    job.run()
    (shown,) = job.annotations()
    assert "<" not in shown["text"]
    assert all(len(tag.encode()) <= 100 for tag in shown["tags"])
    assert shown["tags"][-1] == "id:p1:1"


def test_years_of_history_are_not_announced(job: Job) -> None:
    job.happened(OPENED)
    later = GrafanaGateway(job.grafana.settings())
    assert announce(job.database, later, 1, lambda: datetime.now(UTC) + timedelta(days=8)) == Announced()


def troubled(server: GrafanaServer, chance: random.Random) -> Callable[[], None]:
    """Breaks the next call or two in one of the ways it can."""

    def trouble() -> None:
        verb = chance.choice(["GET", "POST", "PATCH"])
        status = chance.choice([None, 500, 429])
        server.faults.append(Fault(verb, "/api/annotations", status, after=chance.random() < 0.5, times=4))

    return trouble


@pytest.mark.parametrize("seed", range(4))
def test_in_the_end_every_episode_is_shown_once_as_it_is(job: Job, seed: int) -> None:
    chance = random.Random(seed)
    trouble = troubled(job.grafana, chance)

    def lives() -> Iterator[tuple[str, int, list[str]]]:
        for problem in ("p", "q", "r"):
            for episode in (1, 2):
                yield problem, episode, ["opened", "resolved", "reopened", "resolved"][: chance.randint(1, 4)]

    episodes = list(lives())
    expected = {f"id:{problem}:{episode}": events[-1] == "resolved" for problem, episode, events in episodes}
    waiting = [
        OPENED._replace(
            problem_id=problem, episode=episode, event=event, event_id=f"{problem}{episode}{step}",
            at=NOON + timedelta(minutes=100 * episode + step),
        )
        for problem, episode, events in episodes
        for step, event in enumerate(events)
    ]  # fmt: skip
    waiting.sort(key=lambda event: event.at)
    epoch = 1
    while waiting:
        count = chance.randint(1, 5)
        job.happened(*waiting[:count])
        del waiting[:count]
        trouble()
        epoch += chance.random() < 0.4
        try:
            job.run(epoch)
        except Transient:
            continue
    job.grafana.faults.clear()
    job.run(epoch + 1)
    shown = {each["tags"][7]: "resolved" in each["tags"] for each in job.annotations()}
    assert shown == expected
    assert len(job.annotations()) == len(expected)
    assert set(job.states().values()) == {"sent"}
