"""What stands in the outbox where two leaders write of one message."""

from dataclasses import replace
from datetime import timedelta

import pytest

from ragtide.drift.notify.outbox import Message, backlog, enqueue_messages, mark
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.sample_rows import NOON

pytestmark = pytest.mark.clickhouse


@pytest.mark.parametrize("last", ["old", "new"])
def test_a_newer_leaders_word_stands_whoever_writes_last(database: Database, last: str) -> None:
    """The old one has tried more often."""
    message = Message("grafana:e1", "grafana", "open", "p1:1", NOON, {"text": "it fell"}, NOON)
    enqueue_messages(database, [message], epoch=1)
    for leader in ("new", "old") if last == "old" else ("old", "new"):
        if leader == "new":
            mark(database, message, 2, "sent", external_id="7")
        else:
            for attempts in range(3):
                mark(database, replace(message, attempts=attempts), 1, "pending", why="no answer")
    found = backlog(database, "grafana", NOON + timedelta(minutes=1))
    assert (found.waiting, found.refused) == (0, 0)
