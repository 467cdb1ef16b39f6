"""Problems in Grafana, once each, whatever happens on the way: the real engine, real HTTP, the contract server."""

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragtide.drift.leadership import LeaderRow
from ragtide.drift.notify import outbox
from ragtide.drift.notify.delivery import DeliveryResult
from ragtide.drift.problems.model import EventRow, problem_id
from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.grafana import GrafanaGateway
from tests.contracts.grafana_server import Fault, GrafanaServer
from tests.dashboards.sample_rows import NOON, event
from tests.drift.notify.delivery_job import OPENED, REOPENED, RESOLVED, RESOLVED_AGAIN, Job, ms

pytestmark = pytest.mark.clickhouse


class Killed(BaseException):
    """The process ends here."""


def test_running_again_sends_nothing(job: Job) -> None:
    job.happened(OPENED, RESOLVED)
    assert job.run() == DeliveryResult(opened=1, closed=1)
    calls = len(job.grafana.calls)
    assert job.run() == job.run(epoch=2) == DeliveryResult()
    assert len(job.grafana.calls) == calls
    assert job.states() == {"grafana:e1": "sent", "grafana:e3": "sent"}


def test_back_within_the_flap_interval_it_is_the_same_annotation(job: Job) -> None:
    job.happened(OPENED, RESOLVED, REOPENED)
    assert job.run() == DeliveryResult(opened=2, closed=1)
    (shown,) = job.annotations()
    assert "resolved" not in shown["tags"]
    assert shown["text"].startswith("critical accuracy: it fell again")
    job.happened(RESOLVED_AGAIN)
    job.run()
    (shown,) = job.annotations()
    assert (shown["tags"][-1], shown["timeEnd"]) == ("resolved", ms(RESOLVED_AGAIN.at))


def test_another_episode_is_another_annotation(job: Job) -> None:
    job.happened(OPENED, RESOLVED, OPENED._replace(event_id="e9", episode=2, at=NOON + timedelta(hours=5)))
    job.run()
    assert [(each["tags"][8:]) for each in job.annotations()] == [["id:p1:1", "resolved"], ["id:p1:2"]]


def test_a_muted_problem_is_not_announced_until_it_is_unmuted(job: Job) -> None:
    job.happened(OPENED, OPENED._replace(event_id="m1", event="muted", actor="kim", at=NOON + timedelta(seconds=1)))
    assert job.run() == DeliveryResult()
    job.happened(OPENED._replace(event_id="m2", event="unmuted", actor="kim", at=NOON + timedelta(seconds=2)))
    assert job.run() == DeliveryResult(opened=1)


def test_a_mute_runs_out_by_itself(job: Job) -> None:
    muted = OPENED._replace(event_id="m1", event="muted", actor="kim", at=NOON + timedelta(seconds=1))
    running = json.dumps({"until": (datetime.now(UTC) + timedelta(hours=1)).isoformat()})
    over = json.dumps({"until": (datetime.now(UTC) - timedelta(seconds=1)).isoformat()})
    another = muted._replace(problem_id="p2", event_id="m2", attributes=over)
    job.happened(OPENED, muted._replace(attributes=running), OPENED._replace(problem_id="p2", event_id="f1"), another)
    assert job.run() == DeliveryResult(opened=1)
    assert job.states() == {"grafana:f1": "sent"}


def test_what_another_problem_explains_is_told_when_that_one_is_over(job: Job) -> None:
    cause = {"aspect": "coverage", "kind": "coverage", "type": "data_quality"}
    failing = event("p0", "c1", "opened", 1, NOON, **cause)
    job.happened(failing, OPENED)
    assert job.run() == DeliveryResult(opened=1)
    assert job.states() == {"grafana:c1": "sent"}
    job.happened(event("p0", "c2", "resolved", 1, NOON + timedelta(minutes=5), **cause))
    assert job.run() == DeliveryResult(opened=1, closed=1)
    job.happened(event("p0", "c3", "reopened", 1, NOON + timedelta(minutes=6), **cause), RESOLVED)
    assert job.run() == DeliveryResult(opened=1, closed=1)  # whose opening was told, its end is


def test_one_fall_of_the_whole_and_of_its_segments_is_one_message(job: Job) -> None:
    whole = OPENED._replace(problem_id=problem_id("helpdesk", "prod", "m1", "level", OPENED.metric))
    tenants = [
        OPENED._replace(problem_id=f"t{n}", event_id=f"t{n}", segment="tenant", segment_value=f"tenant-{n}")
        for n in range(20)
    ]
    job.happened(*tenants, whole)
    assert job.run() == DeliveryResult(opened=1)
    assert job.states() == {"grafana:e1": "sent"}
    lately = datetime.now(UTC) - timedelta(minutes=10)
    job.happened(whole._replace(event="resolved", event_id="over", at=lately))
    assert job.run() == DeliveryResult(closed=1)
    job.happened(*(one._replace(event="resolved", event_id=f"{one.event_id}-over", at=lately) for one in tenants[:15]))
    assert job.run(days=0.2) == DeliveryResult(opened=5)  # what stands alone now; of the others nothing


def test_a_check_that_looks_back_announces_nothing_of_a_fault_that_is_over(job: Job) -> None:
    now = datetime.now(UTC)
    since = json.dumps({"since": (now - timedelta(hours=3)).isoformat()})
    fault = {"metric": "context_relevancy.score", "type": "retrieval", "attributes": since}
    job.happened(
        event("p0", "c1", "opened", 1, now - timedelta(hours=3), **fault),
        event("p0", "c2", "resolved", 1, now - timedelta(hours=2), **fault),
        event("p1", "i1", "opened", 1, now - timedelta(hours=1), aspect="inconsistency", type="stability"),
    )
    assert job.run() == DeliveryResult(opened=1, closed=1)
    assert job.run(days=0.9) == DeliveryResult()
    assert job.run(days=1) == DeliveryResult(opened=1), "it is no symptom any more"


@pytest.mark.parametrize(
    "fault", [Fault("POST", "/api/annotations", after=True), Fault("POST", "/api/annotations", 500)]
)
def test_where_nobody_knows_whether_it_arrived_it_is_there_once(job: Job, fault: Fault) -> None:
    job.happened(OPENED)
    job.grafana.faults.append(fault)
    assert job.run() == DeliveryResult(failed=["grafana:e1"])
    assert job.states() == {"grafana:e1": "pending"}
    assert job.run() == DeliveryResult(opened=1)
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
    assert job.run(epoch=2) == DeliveryResult(opened=1)
    assert (len(job.annotations()), job.states()) == (1, {"grafana:e1": "sent"})


def test_grafana_away_for_a_while_gets_everything_in_order_afterwards(job: Job) -> None:
    job.happened(OPENED)
    away = Fault("GET", "/api/", 502, b"<h1>Bad gateway</h1>", times=999)
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
    assert job.run() == DeliveryResult(opened=2, closed=1)
    (shown,) = job.annotations()
    assert "resolved" not in shown["tags"]


def test_a_leader_whose_time_is_over_sends_nothing(job: Job) -> None:
    job.happened(OPENED)
    job.database.insert("leaders", [LeaderRow(1, "old"), LeaderRow(2, "new")])
    assert job.run(epoch=1) == DeliveryResult()
    assert job.annotations() == []
    assert job.run(epoch=2) == DeliveryResult(opened=1)


def test_two_leaders_at_the_same_moment_leave_one_annotation(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one has looked and found nothing; then the new one adds; then the old one adds as well."""
    job.happened(OPENED)
    annotate = GrafanaGateway.annotate

    def late(gateway: GrafanaGateway, **what: Any) -> int:
        monkeypatch.setattr(GrafanaGateway, "annotate", annotate)
        assert job.run(epoch=2) == DeliveryResult(opened=1)
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
    assert job.run() == DeliveryResult(closed=1)
    assert job.annotations() == []


def test_what_grafana_refuses_holds_nothing_else_back(job: Job) -> None:
    job.happened(OPENED, OPENED._replace(problem_id="p2", event_id="f1", at=NOON + timedelta(seconds=1)))
    job.grafana.faults.append(Fault("POST", "/api/annotations", 400))
    assert job.run() == DeliveryResult(opened=1, refused=1)
    assert job.states() == {"grafana:e1": "refused", "grafana:f1": "sent"}
    [set_aside] = job.database.rows("SELECT why FROM outbox FINAL WHERE state = 'refused'")
    assert "POST /api/annotations with 400: out of order" in set_aside["why"]
    assert job.run() == DeliveryResult()


def test_what_grafana_fails_on_for_ever_holds_its_own_episode_back_alone(job: Job) -> None:
    later = [OPENED._replace(problem_id=name, event_id=name, at=NOON + timedelta(minutes=2)) for name in "pqr"]
    job.happened(OPENED, RESOLVED, *later)
    broken = Fault("POST", "/api/annotations", 500, about="id:p1:1", times=999)
    job.grafana.faults.append(broken)
    assert job.run() == DeliveryResult(opened=3, failed=["grafana:e1"])
    assert job.run() == DeliveryResult(failed=["grafana:e1"])
    assert job.states() == dict.fromkeys(("grafana:e1", "grafana:e3"), "pending") | {
        f"grafana:{name}": "sent" for name in "pqr"
    }
    broken.times = 0
    assert job.run() == DeliveryResult(opened=1, closed=1)
    assert [each["tags"][8:] for each in job.annotations()][-1] == ["id:p1:1", "resolved"]


def test_where_it_fails_on_many_the_others_wait_for_the_next_run(job: Job) -> None:
    job.happened(*(OPENED._replace(problem_id=name, event_id=name) for name in "abcdef"))
    job.grafana.faults.append(Fault("POST", "/api/annotations", 503, times=999))
    assert job.run() == DeliveryResult(failed=[f"grafana:{name}" for name in "abc"])


def test_a_refused_token_says_what_to_do(job: Job) -> None:
    job.happened(OPENED)
    job.grafana.faults.append(Fault("GET", "/api/annotations", 401))
    with pytest.raises(ConfigError, match=r"grafana\.token"):
        job.run()
    assert job.run() == DeliveryResult(opened=1)


def test_of_years_of_history_only_what_is_open_is_announced(job: Job) -> None:
    job.happened(OPENED, RESOLVED, OPENED._replace(problem_id="p2", event_id="f1", description="it fell"))
    joined = OPENED._replace(event="kind_opened", kind="drift", description="it drifts", at=NOON + timedelta(hours=1))
    job.happened(joined._replace(problem_id="p2", event_id="f2"))
    assert job.run(days=8) == DeliveryResult(opened=1)
    (shown,) = job.annotations()
    assert "id:p2:1" in shown["tags"]
    assert shown["text"].startswith("critical accuracy: it drifts")
    assert job.run(days=30) == DeliveryResult()


def test_what_was_muted_for_long_is_told_as_it_is_now(job: Job) -> None:
    job.happened(OPENED, OPENED._replace(problem_id="p3", event_id="g1"))
    assert job.run() == DeliveryResult(opened=2)
    until = json.dumps({"until": (datetime.now(UTC) + timedelta(days=8)).isoformat()})
    words: dict[str, Any] = {"event": "muted", "actor": "kim", "at": NOON + timedelta(minutes=1), "attributes": until}
    muted = [OPENED._replace(problem_id=id_, event_id=f"m{id_}", **words) for id_ in ("p1", "p2", "p3")]
    job.happened(*muted, OPENED._replace(problem_id="p2", event_id="f1"), RESOLVED)
    gone = [RESOLVED._replace(problem_id="p3", event_id="g2"), REOPENED._replace(problem_id="p3", event_id="g3")]
    job.happened(*gone)
    assert job.run(days=7.5) == DeliveryResult()
    assert job.run(days=8.5) == DeliveryResult(opened=2, closed=1)
    shown = {tag: "resolved" in each["tags"] for each in job.annotations() for tag in each["tags"] if "id:" in tag}
    assert shown == {"id:p1:1": True, "id:p2:1": False, "id:p3:1": False}


def flaky(server: GrafanaServer, chance: random.Random) -> Callable[[], None]:
    """Breaks the next call or two in one of the ways it can."""

    def trouble() -> None:
        verb = chance.choice(["GET", "POST", "PATCH"])
        status = chance.choice([None, 500, 429])
        server.faults.append(Fault(verb, "/api/annotations", status, after=chance.random() < 0.5, times=4))

    return trouble


@pytest.mark.parametrize("seed", range(4))
def test_in_the_end_every_episode_is_shown_once_as_it_is(job: Job, seed: int) -> None:
    chance = random.Random(seed)
    trouble = flaky(job.grafana, chance)

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
    shown = {each["tags"][8]: "resolved" in each["tags"] for each in job.annotations()}
    assert shown == expected
    assert len(job.annotations()) == len(expected)
    assert set(job.states().values()) == {"sent"}


def retrieval(at: datetime) -> EventRow:
    return event("p0", "c1", "opened", 1, at, metric="context_relevancy.score", type="retrieval", severity="critical")


def test_a_symptom_that_opens_first_waits_for_its_parent(job: Job) -> None:
    opened = datetime.now(UTC)
    job.happened(OPENED._replace(at=opened, attributes="{}"))
    assert job.run(wait_s=30) == DeliveryResult()
    job.happened(retrieval(opened + timedelta(seconds=1)))
    assert job.run(wait_s=30) == DeliveryResult()
    assert job.run(days=60 / 86400, wait_s=30) == DeliveryResult(opened=1)
    assert job.states() == {"grafana:c1": "sent"}


def test_a_problem_that_stands_alone_waits_no_longer_and_a_leak_not_at_all(job: Job) -> None:
    opened = datetime.now(UTC)
    leak = event("p2", "l1", "opened", 1, opened, metric="pii_leakage.passes", type="privacy", attributes="{}")
    job.happened(OPENED._replace(at=opened, attributes="{}"), leak)
    assert job.run(wait_s=30) == DeliveryResult(opened=1)
    assert job.states() == {"grafana:l1": "sent"}
    assert job.run(days=60 / 86400, wait_s=30) == DeliveryResult(opened=1)


def test_what_was_announced_before_its_parent_opened_is_ended_too(job: Job) -> None:
    opened = datetime.now(UTC) - timedelta(minutes=3)
    job.happened(OPENED._replace(at=opened, attributes="{}"))
    assert job.run(wait_s=30) == DeliveryResult(opened=1)
    job.happened(retrieval(opened + timedelta(minutes=2)))
    assert job.run(wait_s=30) == DeliveryResult(opened=1)
    job.happened(RESOLVED._replace(at=opened + timedelta(minutes=3)))
    assert job.run(wait_s=30) == DeliveryResult(closed=1)
