"""How far a job looked at what is new, kept for its next look and for the next leader."""

from datetime import timedelta
from typing import NamedTuple

from ragtide.sinks.clickhouse.database import Database

# Of ingest times, for whoever goes by them: an insert shows up a little after its rows' time.
INGEST_OVERLAP = timedelta(seconds=60)


class CursorRow(NamedTuple):
    """Table `cursors`."""

    name: str
    position: int


def load(database: Database, name: str) -> int:
    """The furthest that was kept under this name; 0 where nothing was."""
    rows = database.rows("SELECT max(position) AS position FROM cursors WHERE name = {name:String}", {"name": name})
    return int(rows[0]["position"])


def save(database: Database, name: str, position: int) -> None:
    """The next look under this name, whoever takes it, begins at this position."""
    database.insert("cursors", [CursorRow(name, position)])
