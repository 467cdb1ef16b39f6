"""A database and a clock that are the same in every run: ids and numbers that follow from times can be compared."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.infra.fresh_database import fresh_database

MONDAY = datetime(2024, 1, 1, tzinfo=UTC)
START = MONDAY + timedelta(hours=12)


@contextmanager
def pinned_database(server: EmbeddedClickHouse) -> Iterator[Database]:
    """A database that keeps rows of any age; trace ids of `tests.drift.world` count from 1."""
    with fresh_database(server) as database, pytest.MonkeyPatch.context() as patched:
        patched.setattr("tests.drift.world._numbers", itertools.count(1))
        for row in database.rows(
            "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine_full LIKE '% TTL %'"
        ):
            database.command(f"ALTER TABLE {row['name']} REMOVE TTL")
        yield database
