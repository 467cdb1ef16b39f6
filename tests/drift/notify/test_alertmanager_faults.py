"""Bad answers of an Alertmanager: what the job does about each, and that the others are served all the same."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from ragtide.drift.notify.alertmanager_target import Holding, PostResult
from ragtide.drift.notify.silences import SilenceRow
from ragtide.drift.problems import load_silences
from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from tests.contracts.alertmanager_server import AlertmanagerFault, AlertmanagerServer, serving
from tests.drift.notify.alert_scene import Scene

pytestmark = pytest.mark.clickhouse


@pytest.fixture
def server() -> Iterator[AlertmanagerServer]:
    with serving() as made:
        yield made


@pytest.fixture
def other() -> Iterator[AlertmanagerServer]:
    with serving() as made:
        yield made


@pytest.fixture
def scene(database: Database, server: AlertmanagerServer) -> Iterator[Scene]:
    made = Scene(database, server.url)
    yield made
    made.close()


def problems_of(server: AlertmanagerServer) -> list[list[str]]:
    return [[one["labels"]["problem_id"] for one in post] for post in server.posted]


def test_one_refused_alert_is_found_and_the_others_get_through(scene: Scene, server: AlertmanagerServer) -> None:
    names = [f"p{n}" for n in range(9)]
    scene.opens(*names)
    server.faults.append(AlertmanagerFault("POST", "/alerts", 400, b'"invalid label"', about='"p4"', times=100))
    assert scene.run() == PostResult(begun=8, refused=1)
    assert {name for post in problems_of(server) for name in post} == set(names) - {"p4"}
    assert scene.run() == PostResult()
    assert scene.holdings[server.url].refused == 1
    [row] = scene.database.rows("SELECT why FROM alerts_posted FINAL WHERE problem_id = 'p4' AND state = 'refused'")
    assert "invalid label" in row["why"]
    server.faults.clear()
    scene.happens("updated", "p4", description="it fell further", at=scene.now())
    assert scene.run() == PostResult(begun=1)


def test_a_body_that_is_too_large_is_halved(scene: Scene, server: AlertmanagerServer) -> None:
    scene.opens(*(f"p{n}" for n in range(8)))
    server.faults.append(AlertmanagerFault("POST", "/alerts", 413, b"too large", times=3))
    assert scene.run() == PostResult(begun=8)
    assert sorted(map(len, problems_of(server))) == [1, 1, 2, 4]


def test_where_every_alert_is_refused_it_does_not_ask_for_each(scene: Scene, server: AlertmanagerServer) -> None:
    scene.opens(*(f"p{n}" for n in range(200)))
    fault = AlertmanagerFault("POST", "/alerts", 400, b'"no"', times=1000)
    server.faults.append(fault)
    with pytest.raises(Transient, match=r"refused 2\d alerts"):
        scene.run()
    assert 1000 - fault.times < 100


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, ConfigError), (401, ConfigError), (407, ConfigError), (415, ConfigError), (500, Transient)],
)
def test_after_an_error_everything_is_posted_when_it_is_over(
    scene: Scene, server: AlertmanagerServer, status: int, kind: type[Exception]
) -> None:
    scene.opens("p1")
    server.faults.append(AlertmanagerFault("POST", "/alerts", status))
    with pytest.raises(kind):
        scene.run()
    assert scene.holdings[server.url].waiting == 1
    assert scene.run() == PostResult(begun=1)
    assert scene.holdings[server.url].waiting == 0


def test_it_comes_back_no_sooner_than_it_was_asked_to(scene: Scene, server: AlertmanagerServer) -> None:
    scene.opens("p1")
    server.faults.append(AlertmanagerFault("POST", "/alerts", 429, headers={"Retry-After": "30"}))
    with pytest.raises(Transient, match="429"):
        scene.run()
    with pytest.raises(Transient, match="next attempt in"):
        scene.run(later_s=20)
    assert server.posted == []
    assert scene.run(later_s=40) == PostResult(begun=1)


def test_one_that_hangs_does_not_hold_back_the_others(
    database: Database, server: AlertmanagerServer, other: AlertmanagerServer
) -> None:
    scene = Scene(database, server.url, other.url, every_s=0.2, timeout_s=60)
    release = threading.Event()
    server.faults.append(AlertmanagerFault("POST", "/alerts", 200, b"", hold=release))
    for name in ("p1", "p2", "p3"):
        scene.opens(name)
        while problems_of(other)[-1:] != [[name]]:
            scene.run()
    assert server.posted == []
    release.set()
    while {name for post in problems_of(server) for name in post} < {"p2", "p3"}:
        scene.run()  # the first was in the request that hung, and was accepted
    assert len(problems_of(server)) == 1
    scene.close()


def test_one_that_fires_already_is_not_dropped_for_a_bad_answer(scene: Scene, server: AlertmanagerServer) -> None:
    """Alertmanager would report it as resolved while the problem is open."""
    scene.opens("p1")
    scene.run()
    server.faults.append(AlertmanagerFault("POST", "/alerts", 400, b'"no"'))
    with pytest.raises(Transient, match="had accepted the same alert before"):
        scene.run(later_s=60)
    assert scene.holdings[server.url] == Holding(firing=1, waiting=0, refused=0)
    assert scene.run(later_s=61) == PostResult(reposted=1)


def test_what_was_refused_is_tried_again_after_five_minutes(scene: Scene, server: AlertmanagerServer) -> None:
    scene.opens("p1")
    server.faults.append(AlertmanagerFault("POST", "/alerts", 400, b'"no"'))
    assert scene.run() == PostResult(refused=1)
    assert scene.run(later_s=299) == PostResult()
    assert scene.run(later_s=305) == PostResult(begun=1)


def test_rows_of_alerts_that_fire_are_renewed_each_day(scene: Scene, server: AlertmanagerServer) -> None:
    """They are deleted some months after they were stored; the alert may fire for longer."""

    def version() -> int:
        return int(scene.database.rows("SELECT max(version) AS version FROM alerts_posted FINAL")[0]["version"])

    scene.opens("p1")
    scene.run()
    first = version()
    scene.run(later_s=3600)
    assert version() == first
    scene.run(later_s=25 * 3600)
    assert version() > first


def test_silences_of_an_alertmanager_that_is_not_asked_any_more_end(scene: Scene, server: AlertmanagerServer) -> None:
    until = scene.now() + timedelta(hours=1)
    for url in (server.url, "http://old:9093"):
        row = SilenceRow(url, url, "s1", "kim", "known", scene.now(), until, 0, 1)
        scene.database.insert("alert_silences", [row])
    scene.opens("p1")
    scene.run()
    assert set(load_silences(scene.database, scene.now())) <= {server.url}


def test_an_end_that_its_clock_has_not_reached_is_posted_again(scene: Scene, server: AlertmanagerServer) -> None:
    scene.opens("p1")
    scene.run()
    scene.resolves("p1", at=scene.now() + timedelta(seconds=100))
    assert scene.run(later_s=102) == PostResult()  # the clocks differ by 100 s
    assert scene.holdings[server.url].waiting == 1
    assert len(server.posted) == 2


def test_what_was_never_sent_is_not_reported_as_resolved(database: Database, server: AlertmanagerServer) -> None:
    scene = Scene(database, server.url)
    server.stop()
    scene.opens("p1")
    with pytest.raises(Transient, match="cannot be reached"):
        scene.run()
    scene.resolves("p1")
    with pytest.raises(Transient):
        scene.run()  # the status is asked for
    assert database.rows("SELECT state FROM alerts_posted FINAL") == [{"state": "ended"}]
    assert scene.holdings[server.url].waiting == 0
    scene.close()


def test_an_old_leader_posts_nothing_once_a_newer_one_is_elected(scene: Scene, server: AlertmanagerServer) -> None:
    scene.opens("p1")
    scene.run()
    scene.elect()
    scene.run()
    before = len(server.posted)
    scene.opens("p2")
    scene.resolves("p1")
    assert scene.run_old_leader(later_s=61) == PostResult()
    assert len(server.posted) == before
    assert scene.run() == PostResult(begun=1, ended=1)
