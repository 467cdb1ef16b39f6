"""Tables read back as the rows that were written."""

from typing import Any

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.row_identity import TABLES, Row

_TYPES = {table: row_type for row_type, table in TABLES.items()}


def rows_in_table(database: Database, table: str) -> list[Row]:
    """De-duplicated, deleted rows left out."""
    row_type: Any = _TYPES[table]
    columns = ", ".join(f"`{name}`" for name in row_type._fields)
    return [row_type(**row) for row in database.rows(f"SELECT {columns} FROM {table} FINAL")]
