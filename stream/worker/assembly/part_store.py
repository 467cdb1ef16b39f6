"""Parts of traces that wait: in memory up to a limit, beyond it on disk."""

import os
import sqlite3
import tempfile
from collections import OrderedDict
from collections.abc import Iterable

from ragtide.evaluators.errors import ConfigError

_SPILL_TO = 0.8  # of the limit: what is spilled at a time is worth a transaction
_PART_OVERHEAD = 100  # bytes of the objects around a part
_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -8192;
CREATE TABLE parts (owner INTEGER NOT NULL, value BLOB NOT NULL);
CREATE INDEX parts_of ON parts (owner);
"""


class PartStore:
    """Parts by owner, which is a number. What was not touched for longest is on disk first.

    Nothing outlives the process: the file has no name, and Kafka has the parts. One thread at a time may use it.
    """

    def __init__(self, memory_bytes: int, directory: str = "") -> None:
        self._limit = memory_bytes
        self._directory = directory or tempfile.gettempdir()
        self._parts: OrderedDict[int, list[bytes]] = OrderedDict()
        self._disk: sqlite3.Connection | None = None
        self._spilled: dict[int, int] = {}  # bytes on disk by owner
        self.memory_bytes = 0
        self.disk_bytes = 0

    def add(self, owner: int, value: bytes) -> None:
        """Keep a part; raise `ConfigError` if the disk does not take what memory cannot hold."""
        self._parts.setdefault(owner, []).append(value)
        self._parts.move_to_end(owner)
        self.memory_bytes += len(value) + _PART_OVERHEAD
        if self.memory_bytes > self._limit:
            self._spill()

    def parts(self, owner: int) -> list[bytes]:
        """All parts of the owner, in the order in which they came."""
        found = list(self._parts.get(owner, ()))
        if owner in self._spilled:
            rows = self._database().execute("SELECT value FROM parts WHERE owner = ? ORDER BY rowid", (owner,))
            found = [row[0] for row in rows] + found
        return found

    def drop(self, owner: int) -> None:
        """Forget the parts of the owner."""
        self.memory_bytes -= _size(self._parts.pop(owner, ()))
        if size := self._spilled.pop(owner, 0):
            self.disk_bytes -= size
            self._database().execute("DELETE FROM parts WHERE owner = ?", (owner,))

    def close(self) -> None:
        """Release memory and disk."""
        self._parts.clear()
        self._spilled.clear()
        self.memory_bytes = self.disk_bytes = 0
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def _spill(self) -> None:
        rows: list[tuple[int, bytes]] = []
        while self._parts and self.memory_bytes > self._limit * _SPILL_TO:
            owner, values = self._parts.popitem(last=False)
            size = _size(values)
            self.memory_bytes -= size
            self.disk_bytes += size
            self._spilled[owner] = self._spilled.get(owner, 0) + size
            rows += ((owner, value) for value in values)
        try:
            database = self._database()
            database.execute("BEGIN")
            database.executemany("INSERT INTO parts VALUES (?, ?)", rows)
            database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"{self._directory} (otel.spill_directory) does not take spans beyond otel.memory_bytes: {error}; free "
                "some of the disk, or name a directory on another one"
            ) from None

    def _database(self) -> sqlite3.Connection:
        """The file on disk, made at first use."""
        if self._disk is None:
            handle, path = tempfile.mkstemp(prefix="ragtide-spans-", dir=self._directory)
            os.close(handle)
            self._disk = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._disk.executescript(_SCHEMA)
            os.unlink(path)  # it is gone with the process, however that ends
        return self._disk


def _size(values: Iterable[bytes]) -> int:
    return sum(len(value) + _PART_OVERHEAD for value in values)
