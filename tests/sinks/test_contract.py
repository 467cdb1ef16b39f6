"""The memory sink and ClickHouse pass the same suite."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from sinks.check import CHECKS, Opened
from sinks.clickhouse.database import Database
from sinks.clickhouse.sink import ClickHouseSink
from sinks.memory import MemorySink
from tests.sinks.stored import stored

Check = Callable[[Opened], None]


@pytest.fixture
def in_memory() -> Opened:
    sink = MemorySink()
    return Opened(sink, sink.rows)


@pytest.fixture
def in_clickhouse(database: Database) -> Iterator[Opened]:
    own = Database(database.settings)  # the suite closes it; `database` goes on reading
    yield Opened(ClickHouseSink(own), partial(stored, database))
    own.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_memory(check: Check, in_memory: Opened) -> None:
    check(in_memory)


@pytest.mark.clickhouse
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_clickhouse(check: Check, in_clickhouse: Opened) -> None:
    check(in_clickhouse)
