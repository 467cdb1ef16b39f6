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


def test_a_database_serves_later_tests_without_the_rows_of_earlier_ones(clickhouse_server: EmbeddedClickHouse) -> None:
    """Also where a test failed; with another schema, other retentions or rows that came late it is dropped."""

    def fail(database: Database) -> None:
        ClickHouseSink(database).write(block(traces=2))
        raise ZeroDivisionError

    with fresh_database(clickhouse_server, texts_days=77) as unused:
        pass
    with pytest.raises(ZeroDivisionError), fresh_database(clickhouse_server, texts_days=77) as failing:
        fail(failing)
    assert failing.name == unused.name
    with fresh_database(clickhouse_server, texts_days=78) as other:
        assert other.name != failing.name
    with fresh_database(clickhouse_server, texts_days=77) as later:
        assert later.name == failing.name
        assert later.rows("SELECT count() AS n FROM traces") == [{"n": 0}]
    late = Database(failing.settings)
    ClickHouseSink(late).write(block(traces=2))  # a statement that ends after its test
    late.close()
    with fresh_database(clickhouse_server, texts_days=77) as third:
        assert third.name != failing.name
        assert third.rows("SELECT count() AS n FROM traces") == [{"n": 0}]
        third.command("DROP TABLE outbox")
        names = [row["name"] for row in third.rows("SHOW DATABASES")]
        assert failing.name not in names
    with fresh_database(clickhouse_server, texts_days=77) as fourth:
        assert fourth.name != third.name


def test_every_migration_counts_as_applied(database: Database) -> None:
    found = database.rows("SELECT name FROM schema_migrations ORDER BY name")
    assert [row["name"] for row in found] == list(migrations())
