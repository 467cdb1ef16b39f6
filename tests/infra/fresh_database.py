"""A migrated database of one's own on a running server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse

_OURS = "{database}"


@contextmanager
def fresh_database(server: EmbeddedClickHouse, **retention_days: int) -> Iterator[Database]:
    """Has every table, and these retentions; dropped at the end."""
    with _empty_database(server) as opened:
        for statement in _migrated(server, **retention_days):
            opened.command(statement.replace(_OURS, opened.name))
        yield opened


def reached(database: Database) -> dict[str, str]:
    """Its settings, as the variables of a process."""
    settings = database.settings
    return {
        "RAGTIDE_CLICKHOUSE__URL": settings.url,
        "RAGTIDE_CLICKHOUSE__USER": settings.user,
        "RAGTIDE_CLICKHOUSE__PASSWORD": settings.password.get_secret_value(),
        "RAGTIDE_CLICKHOUSE__DATABASE": settings.database,
    }


@contextmanager
def _empty_database(server: EmbeddedClickHouse) -> Iterator[Database]:
    from ragtide.sinks.clickhouse.database import Database

    opened = Database(server.settings.model_copy(update={"database": f"test_{uuid.uuid4().hex[:12]}"}))
    opened.create()
    try:
        yield opened
    finally:
        opened.command(f"DROP DATABASE IF EXISTS {opened.name}")
        opened.close()


@cache
def _migrated(server: EmbeddedClickHouse, **retention_days: int) -> list[str]:
    """What a migration made, as statements: to migrate anew for every test takes four times as long."""
    from ragtide.sinks.clickhouse.migrate import migrate, migrations
    from ragtide.sinks.settings import RetentionSettings

    with _empty_database(server) as model:
        migrate(model, RetentionSettings(**retention_days))
        found = model.rows(
            "SELECT create_table_query AS made FROM system.tables WHERE database = currentDatabase() "
            "ORDER BY engine LIKE '%View'"
        )
        statements = [row["made"].replace(model.name, _OURS) for row in found]
    applied = ", ".join(f"('{name}')" for name in migrations())
    return [*statements, f"INSERT INTO {_OURS}.schema_migrations (name) VALUES {applied}"]
