"""The proxy before ClickHouse does to inserts what it says, and nothing to anything else."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from ragtide.drift.leadership import LeaderRow
from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import ClickHouseSettings
from tests.chaos.harness.spoiled_inserts import SpoiledInserts
from tests.chaos.processes import wait_until
from tests.infra.ports import free_ports

pytestmark = pytest.mark.clickhouse

ROWS = [LeaderRow(1, "somebody")]
COUNT = "SELECT count() AS n FROM leaders"


@contextmanager
def through(inserts: SpoiledInserts, timeout_s: float = 30) -> Iterator[Database]:
    database = Database(inserts.settings.model_copy(update={"timeout_s": timeout_s}))
    yield database
    database.close()


def test_what_is_answered_with_an_error_is_stored_all_the_same(database: Database) -> None:
    with SpoiledInserts(database.settings) as inserts, through(inserts) as client:
        with inserts.spoiling("error"):
            with pytest.raises(Transient):
                client.insert("leaders", ROWS)
            assert client.rows(COUNT) == [{"n": 1}]
        client.insert("leaders", ROWS)
        assert inserts.spoiled == {"leaders": 1}


def test_what_is_not_answered_is_stored_all_the_same(database: Database) -> None:
    with SpoiledInserts(database.settings) as inserts, through(inserts) as client:
        client.insert("leaders", ROWS)  # now it is connected
        with through(inserts, timeout_s=1) as hasty, inserts.spoiling("silence"):
            assert hasty.rows(COUNT) == [{"n": 1}]
            with pytest.raises(Transient):
                hasty.insert("leaders", [LeaderRow(2, "somebody")])
            assert client.rows(COUNT) == [{"n": 2}]


def test_what_is_delayed_is_stored_afterwards_though_nobody_waits_for_it(database: Database) -> None:
    with SpoiledInserts(database.settings) as inserts, ThreadPoolExecutor(1) as thread:
        with through(inserts) as patient, through(inserts, timeout_s=1) as hasty, inserts.spoiling("delay"):
            waiting = thread.submit(patient.insert, "leaders", ROWS)
            with pytest.raises(Transient):
                hasty.insert("leaders", [LeaderRow(2, "somebody")])
            assert database.rows(COUNT) == [{"n": 0}]
        waiting.result(30)
        wait_until(lambda: database.rows(COUNT) == [{"n": 2}], 30, "both rows")


def test_where_clickhouse_is_away_the_proxy_does_not_answer_either() -> None:
    nowhere = ClickHouseSettings(url=f"http://127.0.0.1:{free_ports(1)}")
    with SpoiledInserts(nowhere) as inserts, through(inserts) as client, pytest.raises(Transient):
        client.rows("SELECT 1")
