"""Databases for tests: what a migration makes, and nothing of another test's."""

from typing import Any

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate, migrations, missing
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.sample import block
from ragtide.sinks.settings import RetentionSettings
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse


def tables(database: Database) -> dict[str, str]:
    found = database.rows(
        "SELECT name, create_table_query AS made FROM system.tables WHERE database = currentDatabase()"
    )
    return {row["name"]: row["made"].replace(database.name, "ours") for row in found}


def test_it_is_what_a_migration_makes(clickhouse_server: EmbeddedClickHouse) -> None:
    """Table by table, with constraints, indices and lifetimes; a migration finds nothing to do."""
    migrated = Database(clickhouse_server.settings.model_copy(update={"database": "test_migrated"}))
    migrate(migrated, RetentionSettings(texts_days=3))
    with fresh_database(clickhouse_server, texts_days=3) as fresh:
        assert tables(fresh) == tables(migrated)
        assert missing(fresh) == []
        assert migrate(fresh, RetentionSettings(texts_days=3)) == []
    with fresh_database(clickhouse_server) as fresh:
        assert tables(fresh) != tables(migrated)
    migrated.command("DROP DATABASE test_migrated")
    migrated.close()


def test_tests_do_not_meet_in_it(clickhouse_server: EmbeddedClickHouse) -> None:
    """Neither rows nor what was done to the tables, at the same time or one after the other."""

    def traces(database: Database) -> Any:
        return database.rows("SELECT count() AS n FROM traces")[0]["n"]

    with fresh_database(clickhouse_server) as one, fresh_database(clickhouse_server) as other:
        untouched = tables(other)
        ClickHouseSink(one).write(block(traces=2))
        one.command("ALTER TABLE scores DROP CONSTRAINT finite_metrics")
        one.command("DROP TABLE outbox")
        one.command("TRUNCATE TABLE schema_migrations")
        assert (traces(one), traces(other)) == (2, 0)
        assert tables(other) == untouched
    with fresh_database(clickhouse_server) as later:
        assert traces(later) == 0
        assert tables(later) == untouched
        assert missing(later) == []
        assert migrate(later, RetentionSettings()) == []


def test_views_read_the_tables_beside_them(clickhouse_server: EmbeddedClickHouse) -> None:
    with fresh_database(clickhouse_server) as one, fresh_database(clickhouse_server) as other:
        ClickHouseSink(one).write(block(traces=1))
        assert len(one.rows("SELECT metric FROM metric_values")) == 4
        assert other.rows("SELECT metric FROM metric_values") == []


def test_it_is_gone_afterwards_also_where_the_test_failed(clickhouse_server: EmbeddedClickHouse) -> None:
    with pytest.raises(ZeroDivisionError), fresh_database(clickhouse_server) as failing:
        raise ZeroDivisionError
    with fresh_database(clickhouse_server) as later:
        names = [row["name"] for row in later.rows("SHOW DATABASES")]
    assert later.name in names
    assert failing.name not in names


def test_every_migration_counts_as_applied(database: Database) -> None:
    found = database.rows("SELECT name FROM schema_migrations ORDER BY name")
    assert [row["name"] for row in found] == list(migrations())
