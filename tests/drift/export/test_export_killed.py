"""The exporting process ended by kill -9 at every step: each score arrives at least once, repeats with the same id.

All rows are of one insert, and of several batches.
"""

import signal
from datetime import timedelta

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.drift.export.export_process import POINTS, exit_status
from tests.drift.export.scene import Exporting, HttpSender, arrived, score, trace, trace_id
from tests.infra.webhook_receiver import Receiver

pytestmark = [pytest.mark.clickhouse, pytest.mark.chaos]


@pytest.mark.parametrize("point", POINTS)
def test_kill_9_at_any_step_loses_nothing_and_repeats_are_the_same(
    database: Database, receiver: Receiver, point: str
) -> None:
    export = Exporting(database, HttpSender(receiver.url))
    database.insert("traces", [trace(number) for number in range(1, 9)])
    export.store(*(score(number) for number in range(1, 9)))
    now = export.now + timedelta(seconds=61)
    assert exit_status(database.settings, receiver.url, now, point) == -signal.SIGKILL
    assert exit_status(database.settings, receiver.url, now) == 0
    records = arrived(receiver)
    assert {record["traceId"] for record in records} == {trace_id(number) for number in range(1, 9)}
    assert len(records) <= 10, "at most the batch that was under way is repeated"
    by_id = {record["attributes"]["ragtide.event.id"]: record for record in records}
    assert len(by_id) == 8
    assert all(record == by_id[record["attributes"]["ragtide.event.id"]] for record in records)
    assert exit_status(database.settings, receiver.url, now) == 0
    assert len(arrived(receiver)) == len(records)
