"""A migrated database of one's own on a running server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sinks.clickhouse.database import Database
    from sinks.clickhouse.embedded import EmbeddedClickHouse


@contextmanager
def fresh_database(server: EmbeddedClickHouse, **retention_days: int) -> Iterator[Database]:
    """Has every table, and these retentions; dropped at the end."""
    from sinks.clickhouse.database import Database
    from sinks.clickhouse.migrate import migrate
    from sinks.settings import RetentionSettings

    name = f"test_{uuid.uuid4().hex[:12]}"
    opened = Database(server.settings.model_copy(update={"database": name}))
    migrate(opened, RetentionSettings(**retention_days))
    yield opened
    opened.command(f"DROP DATABASE IF EXISTS {name}")
    opened.close()
