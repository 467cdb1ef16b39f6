"""A cache of judges' replies in a file: calls with the same input are paid for once, also after a restart.

It holds what judges wrote, which may repeat users' texts, so it exists only where settings name a file. Several
processes may share it. A file that cannot be used is logged once, and calls go on without it.
"""

import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ragtide.evaluators.errors import ConfigError

_log = logging.getLogger(__name__)
_TABLE = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply BLOB, used INTEGER) WITHOUT ROWID"
_BY_USE = "CREATE INDEX IF NOT EXISTS by_use ON replies (used)"
_SIZE = "SELECT coalesce(sum(length(key) + length(reply)), 0) FROM replies"
_OVERHEAD = 64  # bytes of a row and its place in the index, about
_KEPT = 0.9  # of the size, after the oldest have gone
_TIMEOUT_S = 0.5
Result = TypeVar("Result")


def open_private(path: Path) -> sqlite3.Connection:
    """Open a database file that its user alone may read. Raises `OSError` or `sqlite3.Error`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    return sqlite3.connect(path, timeout=_TIMEOUT_S, isolation_level=None, check_same_thread=False)


class ReplyCache:
    """Replies by hash of the call, the least recently used dropped beyond `max_bytes`. Used by one thread."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._is_told = False
        try:
            self._database = open_private(path)
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from None
        try:
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = OFF", _TABLE, _BY_USE):
                self._database.execute(statement)
            self._size = self._stored_bytes()
        except sqlite3.Error as error:
            self._database.close()
            raise _unusable(path, error) from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def get(self, key: bytes) -> bytes | None:
        """Return the reply, or None."""
        return self._try(lambda: self._get(key), None)

    def put(self, key: bytes, reply: bytes) -> None:
        """Keep the reply."""
        self._try(lambda: self._put(key, reply), None)

    def _get(self, key: bytes) -> bytes | None:
        row = self._database.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        self._try(lambda: self._mark_used(key), None)  # a lock must not cost the reply
        return bytes(row[0])

    def _mark_used(self, key: bytes) -> None:
        self._database.execute("UPDATE replies SET used = ? WHERE key = ?", (time.time_ns(), key))

    def _put(self, key: bytes, reply: bytes) -> None:
        own = len(key) + len(reply) + _OVERHEAD
        if own > self._max_bytes:
            return
        self._database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (key, reply, time.time_ns()))
        self._size += own
        if self._size > self._max_bytes:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drop the least recently used replies. Other processes add some too, so that the size is read anew."""
        self._size = self._stored_bytes()
        surplus = self._size - int(_KEPT * self._max_bytes)
        keys: list[tuple[bytes]] = []
        for key, size in self._database.execute("SELECT key, length(key) + length(reply) FROM replies ORDER BY used"):
            if surplus <= 0:
                break
            keys.append((key,))
            surplus -= size + _OVERHEAD
            self._size -= size + _OVERHEAD
        self._database.executemany("DELETE FROM replies WHERE key = ?", keys)

    def _stored_bytes(self) -> int:
        size, rows = self._database.execute(_SIZE.replace("FROM", ", count(*) FROM")).fetchone()
        return int(size) + _OVERHEAD * int(rows)

    def _try(self, use: Callable[[], Result], otherwise: Result) -> Result:
        try:
            return use()
        except sqlite3.Error as error:
            if not self._is_told:
                self._is_told = True
                _log.warning("the judge's cache %s does not work: %s", self._path, type(error).__name__)
            return otherwise


def _unusable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"evaluators.judge.cache.path: {path} cannot be used: {type(error).__name__}")
