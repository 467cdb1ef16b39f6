"""The announcing process ended by kill -9 at every step: whoever goes on sends each message, and none twice."""

import signal
from datetime import timedelta

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.contracts.grafana_server import GrafanaServer
from tests.dashboards.sample_rows import NOON, event
from tests.drift.notify.delivery_process import POINTS, exit_status

pytestmark = [pytest.mark.clickhouse, pytest.mark.chaos]

OPENED = event("p1", "e1", "opened", 1, NOON)
EVENTS = [
    OPENED,
    OPENED._replace(event_id="e2", event="resolved", at=NOON + timedelta(minutes=1)),
    OPENED._replace(event_id="e3", problem_id="p2", at=NOON + timedelta(minutes=2)),
    OPENED._replace(event_id="e4", problem_id="p3", at=NOON + timedelta(minutes=3)),
]


@pytest.mark.parametrize("point", POINTS)
def test_kill_9_at_any_step_loses_and_doubles_nothing(database: Database, grafana: GrafanaServer, point: str) -> None:
    database.insert("problem_events", EVENTS)
    assert exit_status(database.settings, grafana.settings(), point) == -signal.SIGKILL
    assert exit_status(database.settings, grafana.settings()) == 0
    shown = [each["tags"][8:] for each in grafana.state.annotations.values()]
    assert shown == [["id:p1:1", "resolved"], ["id:p2:1"], ["id:p3:1"]]
    assert len(grafana.made("POST", "/api/annotations")) == 3
    rows = database.rows("SELECT message_id, state FROM outbox FINAL ORDER BY message_id")
    assert [tuple(row.values()) for row in rows] == [(f"grafana:e{number}", "sent") for number in range(1, 5)]
