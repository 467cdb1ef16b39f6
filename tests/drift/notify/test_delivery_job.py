"""A Grafana that is away for long: asked ever more rarely, then sent all, oldest first; metrics show what waits."""

from datetime import timedelta
from functools import partial
from itertools import chain, repeat

import pytest

from ragtide.drift.jobs import server_time
from ragtide.drift.notify import outbox
from ragtide.drift.notify.delivery import DeliveryJob, DeliveryResult
from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.grafana import GrafanaGateway
from ragtide.stream.job_schedule import export_backlog
from ragtide.stream.telemetry.registry import Telemetry
from tests.contracts.grafana_server import Fault, GrafanaServer
from tests.dashboards.sample_rows import NOON, event
from tests.drift.notify.delivery_job import annotations

pytestmark = pytest.mark.clickhouse


class Job:
    """The job with the clock in hand: pauses of 10, 20 and then 40 s."""

    def __init__(self, database: Database, grafana: GrafanaServer) -> None:
        self._database = database
        self._telemetry = Telemetry()
        gateway = GrafanaGateway(grafana.settings(), sleep=lambda _: None)
        self._job = DeliveryJob(
            database,
            annotations(gateway),
            partial(export_backlog, self._telemetry, "grafana"),
            lambda: chain([10.0, 20.0], repeat(40.0)),
        )
        self._began = server_time(database)

    def happened(self, *problems: str) -> None:
        """One minute after the other."""
        rows = [event(name, f"e-{name}", "opened", 1, NOON + timedelta(minutes=ord(name))) for name in problems]
        self._database.insert("problem_events", rows)

    def run(self, second: float) -> DeliveryResult:
        return self._job.run(1, self._began + timedelta(seconds=second))

    def seen(self, metric: str) -> float | None:
        return self._telemetry.registry.get_sample_value(f"ragtide_outbox_{metric}", {"target": "grafana"})


@pytest.fixture
def job(database: Database, grafana: GrafanaServer) -> Job:
    return Job(database, grafana)


def test_away_for_long_it_is_asked_less_often_and_then_gets_all_in_order(job: Job, grafana: GrafanaServer) -> None:
    away = Fault("GET", "/api/", 502, times=10_000)
    grafana.faults.append(away)
    job.happened("c")
    asked = []
    for second in range(0, 120, 10):
        before = away.times
        with pytest.raises(Transient):
            job.run(second)
        if away.times < before:
            asked.append(second)
        if second == 20:
            job.happened("b", "a")  # of minutes before
            assert job.seen("waiting") == 1
    assert asked == [0, 10, 30, 70, 110]
    assert job.seen("waiting") == 3
    assert job.seen("oldest_seconds") == 110
    away.times = 0
    with pytest.raises(Transient, match="next attempt in 30 s"):
        job.run(120)
    assert job.run(150) == DeliveryResult(opened=3)
    sent = [next(tag for tag in call.body["tags"] if tag[:3] == "id:") for call in grafana.made("POST", "/api/ann")]
    assert sent == ["id:a:1", "id:b:1", "id:c:1"]
    assert [job.seen(name) for name in ("waiting", "oldest_seconds", "refused")] == [0, 0, 0]
    grafana.faults.append(Fault("GET", "/api/", 502, times=8))
    job.happened("d")
    with pytest.raises(Transient):
        job.run(300)
    assert job.run(310) == DeliveryResult(opened=1)  # the pauses began anew


def test_a_message_that_fails_for_ever_is_tried_ever_more_rarely_and_the_others_go_on(
    job: Job, grafana: GrafanaServer
) -> None:
    broken = Fault("POST", "/api/annotations", 500, about="id:a:1", times=10_000)
    grafana.faults.append(broken)
    job.happened("a")
    tried = []
    for second in range(0, 120, 10):
        before = broken.times
        if second in (20, 90):
            job.happened("b" if second == 20 else "c")
        assert job.run(second).opened == (second in (20, 90))
        if broken.times < before:
            tried.append(second)
        assert [job.seen(name) for name in ("waiting", "failing", "oldest_seconds")] == [1, 1, second]
    assert tried == [0, 10, 30, 70, 110]
    broken.times = 0
    assert [job.run(second).opened for second in (140, 150)] == [0, 1]
    assert [job.seen(name) for name in ("waiting", "failing")] == [0, 0]


def test_what_is_refused_is_counted_and_does_not_wait(job: Job, grafana: GrafanaServer) -> None:
    job.happened("a")
    grafana.faults.append(Fault("POST", "/api/annotations", 413))
    assert job.run(0) == DeliveryResult(refused=1)
    assert [job.seen(name) for name in ("waiting", "refused")] == [0, 1]


def test_a_backlog_is_worked_off_in_bounded_steps(
    job: Job, grafana: GrafanaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MOST", 2)
    job.happened("e", "d", "c", "b", "a")
    assert [job.run(second).opened for second in (0, 10, 20, 30)] == [2, 2, 1, 0]
    sent = [next(tag for tag in call.body["tags"] if tag[:3] == "id:") for call in grafana.made("POST", "/api/ann")]
    assert sent == [f"id:{name}:1" for name in "abcde"]
