"""Store how far a job has read, for its next run and for the next leader."""

from datetime import timedelta
from typing import NamedTuple

from ragtide.sinks.clickhouse.database import Database

# For readers by ingest time: an insert is visible a little after its rows' time.
INGEST_OVERLAP = timedelta(seconds=60)


class CursorRow(NamedTuple):
    """Table `cursors`."""

    name: str
    position: int


def load(database: Database, name: str) -> int:
    """Load the largest position under this name; 0 if there is none."""
    rows = database.rows("SELECT max(position) AS position FROM cursors WHERE name = {name:String}", {"name": name})
    return int(rows[0]["position"])


def save(database: Database, name: str, position: int) -> None:
    """Store the position at which the next run continues."""
    database.insert("cursors", [CursorRow(name, position)])
