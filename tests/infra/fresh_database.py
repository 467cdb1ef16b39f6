"""A migrated, empty database of one's own on a running server.

Creating its 32 tables and views costs more than most tests do with them. So a database is emptied at the end and given
to a later test, unless a test changed the schema.
"""

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
_Contents = dict[str, tuple[int, int]]  # by table: hash of its definition, number of rows


@contextmanager
def fresh_database(server: EmbeddedClickHouse, **retention_days: int) -> Iterator[Database]:
    """Has every table, these retentions, and no rows; no other test sees it at the same time."""
    idle = _idle_databases(server, **retention_days)
    while idle:
        name, made = idle.pop()
        opened = _open(server, name)
        if _contents(opened) == made:
            break
        _drop(opened)  # a statement of an earlier test ended late
    else:
        opened = _open(server, f"test_{uuid.uuid4().hex[:12]}")
        opened.create()
        for statement in _migrated(server, **retention_days):
            opened.command(statement.replace(_OURS, opened.name))
        made = _contents(opened)
    try:
        yield opened
    finally:
        if _empty(opened, made):
            idle.append((opened.name, made))
            opened.close()
        else:
            _drop(opened)


def reached(database: Database) -> dict[str, str]:
    """Its settings, as the variables of a process."""
    settings = database.settings
    return {
        "RAGTIDE_CLICKHOUSE__URL": settings.url,
        "RAGTIDE_CLICKHOUSE__USER": settings.user,
        "RAGTIDE_CLICKHOUSE__PASSWORD": settings.password.get_secret_value(),
        "RAGTIDE_CLICKHOUSE__DATABASE": settings.database,
    }


@cache
def _idle_databases(server: EmbeddedClickHouse, **retention_days: int) -> list[tuple[str, _Contents]]:
    """Names and contents of migrated databases that no test uses."""
    return []


def _empty(opened: Database, made: _Contents) -> bool:
    """Remove the rows of a test; false if it changed a table or the record of migrations."""
    found = _contents(opened)
    if {name: schema for name, (schema, _) in found.items()} != {name: schema for name, (schema, _) in made.items()}:
        return False
    for name, (_, rows) in found.items():
        if rows and not made[name][1]:
            opened.command(f"TRUNCATE TABLE {name}")
    return found["schema_migrations"] == made["schema_migrations"]


def _contents(opened: Database) -> _Contents:
    found = opened.rows(
        "SELECT name, cityHash64(create_table_query) AS made, ifNull(total_rows, 0) AS n "
        "FROM system.tables WHERE database = currentDatabase()"
    )
    return {row["name"]: (row["made"], row["n"]) for row in found}


def _open(server: EmbeddedClickHouse, name: str) -> Database:
    from ragtide.sinks.clickhouse.database import Database

    return Database(server.settings.model_copy(update={"database": name}))


def _drop(opened: Database) -> None:
    opened.command(f"DROP DATABASE IF EXISTS {opened.name}")
    opened.close()


@cache
def _migrated(server: EmbeddedClickHouse, **retention_days: int) -> list[str]:
    """What a migration made, as statements: to migrate anew for every test takes four times as long."""
    from ragtide.sinks.clickhouse.migrate import migrate, migrations
    from ragtide.sinks.settings import RetentionSettings

    model = _open(server, f"model_{uuid.uuid4().hex[:12]}")
    model.create()
    migrate(model, RetentionSettings(**retention_days))
    found = model.rows(
        "SELECT create_table_query AS made FROM system.tables WHERE database = currentDatabase() "
        "ORDER BY engine LIKE '%View'"
    )
    statements = [row["made"].replace(model.name, _OURS) for row in found]
    _drop(model)
    applied = ", ".join(f"('{name}')" for name in migrations())
    return [*statements, f"INSERT INTO {_OURS}.schema_migrations (name) VALUES {applied}"]
