"""The memory sink and ClickHouse pass the same suite."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.memory import MemorySink
from ragtide.sinks.sink_contract import CHECKS, SinkFixture
from tests.sinks.table_rows import rows_in_table

Check = Callable[[SinkFixture], None]


@pytest.fixture
def in_memory() -> SinkFixture:
    sink = MemorySink()
    return SinkFixture(sink, sink.rows)


@pytest.fixture
def in_clickhouse(database: Database) -> Iterator[SinkFixture]:
    own = Database(database.settings)  # the suite closes it; `database` goes on reading
    yield SinkFixture(ClickHouseSink(own), partial(rows_in_table, database))
    own.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_memory(check: Check, in_memory: SinkFixture) -> None:
    check(in_memory)


@pytest.mark.clickhouse
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_clickhouse(check: Check, in_clickhouse: SinkFixture) -> None:
    check(in_clickhouse)
