"""A migrated database of one's own on a running server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sinks.clickhouse.database import Database
    from sinks.clickhouse.embedded import EmbeddedClickHouse

_OURS = "{database}"


@contextmanager
def fresh_database(server: EmbeddedClickHouse, **retention_days: int) -> Iterator[Database]:
    """Has every table, and these retentions; dropped at the end."""
    with _empty_database(server) as opened:
        opened.command(_migrated(server, **retention_days).replace(_OURS, opened.name))
        yield opened


def reached(database: Database) -> dict[str, str]:
    """Its settings, as the variables of a process."""
    settings = database.settings
    return {
        "RAGWATCH_CLICKHOUSE__URL": settings.url,
        "RAGWATCH_CLICKHOUSE__USER": settings.user,
        "RAGWATCH_CLICKHOUSE__PASSWORD": settings.password.get_secret_value(),
        "RAGWATCH_CLICKHOUSE__DATABASE": settings.database,
    }


@contextmanager
def _empty_database(server: EmbeddedClickHouse) -> Iterator[Database]:
    from sinks.clickhouse.database import Database

    opened = Database(server.settings.model_copy(update={"database": f"test_{uuid.uuid4().hex[:12]}"}))
    opened.create()
    try:
        yield opened
    finally:
        opened.command(f"DROP DATABASE IF EXISTS {opened.name}")
        opened.close()


@cache
def _migrated(server: EmbeddedClickHouse, **retention_days: int) -> str:
    """What a migration made, as one script: to migrate anew for every test takes four times as long."""
    from sinks.clickhouse.migrate import migrate, migrations
    from sinks.settings import RetentionSettings

    with _empty_database(server) as model:
        migrate(model, RetentionSettings(**retention_days))
        found = model.rows(
            "SELECT create_table_query AS made FROM system.tables WHERE database = currentDatabase() "
            "ORDER BY engine LIKE '%View'"
        )
        statements = [row["made"].replace(model.name, _OURS) for row in found]
    applied = ", ".join(f"('{name}')" for name in migrations())
    return ";\n".join([*statements, f"INSERT INTO {_OURS}.schema_migrations (name) VALUES {applied}"])
