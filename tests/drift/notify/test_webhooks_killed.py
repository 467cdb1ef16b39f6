"""The posting process ended by kill -9 at every step: the receiver gets each message at least once, and in order."""

import signal
from collections.abc import Iterator
from datetime import timedelta

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.sample_rows import NOON, event
from tests.drift.notify.webhook_process import POINTS, exit_status
from tests.infra.webhook_receiver import Receiver, receiving

pytestmark = [pytest.mark.clickhouse, pytest.mark.chaos]

OPENED = event("p1", "e1", "opened", 1, NOON)
EVENTS = [
    OPENED,
    OPENED._replace(event_id="e2", event="resolved", at=NOON + timedelta(minutes=1)),
    OPENED._replace(event_id="e3", problem_id="p2", at=NOON + timedelta(minutes=2)),
]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.mark.parametrize("point", POINTS)
def test_kill_9_at_any_step_loses_nothing_and_keeps_ids_and_order(
    database: Database, receiver: Receiver, point: str
) -> None:
    database.insert("problem_events", EVENTS)
    assert exit_status(database.settings, receiver.url, point) == -signal.SIGKILL
    assert exit_status(database.settings, receiver.url) == 0
    ids = [call.event["id"] for call in receiver.calls]
    assert list(dict.fromkeys(ids)) == ["e1", "e2", "e3"]
    assert len(ids) <= 4  # at most the one that was under way is repeated
    bodies = {call.event["id"]: call.body for call in receiver.calls}
    assert all(call.body == bodies[call.event["id"]] for call in receiver.calls)
    rows = database.rows("SELECT message_id, state FROM outbox FINAL ORDER BY message_id")
    assert [tuple(row.values()) for row in rows] == [(f"webhook:pager:e{number}", "sent") for number in (1, 2, 3)]
