"""The embedded ClickHouse on a disk that fails: what was acknowledged is there, what is not there was not acknowledged.

chDB acknowledges what it could not write; see sinks/clickhouse/embedded/storage.py.
"""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.failures.disk import refusing_writes, small_disk

pytestmark = pytest.mark.clickhouse

HALF_A_PART = 3 << 20
PART = "INSERT INTO t SELECT number, randomPrintableASCII(100) FROM numbers(100000)"  # 10 MB that do not compress
COUNT = "SELECT count() AS n, sum(length(s)) AS characters FROM t"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedClickHouse]:
    with EmbeddedClickHouse(tmp_path / "clickhouse") as running:
        yield running


@pytest.fixture
def table(server: EmbeddedClickHouse) -> Iterator[Database]:
    with closing(table_of(server)) as database:
        yield database


def table_of(server: EmbeddedClickHouse) -> Database:
    database = Database(server.settings)
    database.create()
    database.command("CREATE TABLE t (n UInt64, s String) ENGINE = MergeTree ORDER BY n")
    database.command("INSERT INTO t SELECT number, 'good' FROM numbers(7)")
    return database


def test_a_write_that_fails_half_way_is_not_acknowledged(server: EmbeddedClickHouse, table: Database) -> None:
    with refusing_writes(server.pid, HALF_A_PART):
        with pytest.raises(Transient, match="CANNOT_WRITE"):
            table.command(PART)
        assert table.rows(COUNT) == [{"n": 7, "characters": 28}]
        table.command("INSERT INTO t VALUES (8, 'fits')")  # the disk takes this much
    assert table.rows(COUNT) == [{"n": 8, "characters": 32}]
    table.command(PART)
    assert table.rows(COUNT) == [{"n": 100_008, "characters": 10_000_032}]


def test_nothing_is_lost_while_no_write_works(server: EmbeddedClickHouse, table: Database) -> None:
    with refusing_writes(server.pid):
        for statement in (
            "INSERT INTO t VALUES (8, 'no')",
            "INSERT INTO t SELECT number, 'no' FROM numbers(9)",
            "ALTER TABLE t ADD COLUMN more UInt8",
            "CREATE TABLE u (n UInt64) ENGINE = MergeTree ORDER BY n",
            "OPTIMIZE TABLE t FINAL",
        ):
            with pytest.raises(Transient, match="CANNOT_WRITE"):
                table.command(statement)
        assert table.rows(COUNT) == [{"n": 7, "characters": 28}]
    server.kill()
    server.start()
    assert table.rows(COUNT) == [{"n": 7, "characters": 28}]
    assert [row["name"] for row in table.rows("SHOW TABLES")] == ["t"]


def test_a_disk_that_was_taken_away_is_not_written_to_in_its_absence(
    server: EmbeddedClickHouse, table: Database, tmp_path: Path
) -> None:
    data, away = tmp_path / "clickhouse" / "data", tmp_path / "away"
    data.rename(away)
    for statement in ("INSERT INTO t VALUES (8, 'void')", "SELECT * FROM t", "INSERT INTO t VALUES (8, 'void')"):
        with pytest.raises(Transient):
            table.command(statement)
    if data.exists():
        data.rename(tmp_path / "made meanwhile")
    away.rename(data)
    assert table.rows(COUNT) == [{"n": 7, "characters": 28}]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", 128 << 20):
        yield tmp_path / "small"


def test_a_full_disk_keeps_what_it_acknowledged_and_takes_more_once_there_is_room(small: Path) -> None:
    filler = small / "filler"
    with EmbeddedClickHouse(small / "clickhouse") as server, closing(table_of(server)) as table:
        filler.write_bytes(bytes(shutil.disk_usage(small).free - (32 << 20)))
        table.command(PART)
        with pytest.raises(Transient, match=r"NOT_ENOUGH_SPACE|CANNOT_WRITE"):
            table.command(PART.replace("100000", "400000"))
        assert table.rows(COUNT) == [{"n": 100_007, "characters": 10_000_028}]
        filler.unlink()
        table.command(PART)
        server.kill()
        server.start()
        assert table.rows(COUNT) == [{"n": 200_007, "characters": 20_000_028}]
