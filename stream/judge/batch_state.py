"""Which calls are in which batch, in a file: a command that was stopped finds its batches again and pays them once.

It lies beside the cache of replies and holds hashes of requests, ids of the endpoint, sizes and times, and no text. A
batch is written down before its file is sent. One process at a time uses the file.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.judge.reply_cache import open_private

_log = logging.getLogger(__name__)
_TABLES = (
    "CREATE TABLE IF NOT EXISTS batches "
    "(token TEXT PRIMARY KEY, url TEXT, begun_s REAL, file TEXT, batch TEXT, was_read INTEGER)",
    "CREATE TABLE IF NOT EXISTS calls (id TEXT PRIMARY KEY, token TEXT, bytes INTEGER) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS by_token ON calls (token)",
)
_KEPT_S = 30 * 86_400.0  # endpoints delete results after 30 days


@dataclass(slots=True, eq=False)
class BatchRecord:
    """A batch as the file has it. `sizes`: bytes of the request of each call, by id. Without `batch` it may not exist.

    `was_read`: its replies were handed out; those that can be read are in the cache.
    """

    token: str
    begun_s: float  # since 1970
    sizes: Mapping[str, int]
    file: str | None = None
    batch: str | None = None
    was_read: bool = False


class BatchState:
    """The file. Raises `ConfigError` if it cannot be used; methods raise `sqlite3.Error`."""

    def __init__(self, path: Path, now_s: float) -> None:
        try:
            self._database = open_private(path)
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from None
        try:
            for statement in ("PRAGMA locking_mode = EXCLUSIVE", "PRAGMA synchronous = FULL", "BEGIN EXCLUSIVE"):
                self._database.execute(statement)
            for statement in _TABLES:
                self._database.execute(statement)
            old = self._database.execute(
                "DELETE FROM batches WHERE begun_s < ? RETURNING batch, file", (now_s - _KEPT_S,)
            ).fetchall()
            self._database.execute("DELETE FROM calls WHERE token NOT IN (SELECT token FROM batches)")
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            self._database.close()
            raise _unusable(path, error) from None
        for batch, file in old:
            if file is not None:
                _log.warning(
                    "batch %s is older than 30 days and forgotten; the endpoint may hold its file %s", batch, file
                )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def records(self, url: str) -> list[BatchRecord]:
        """Return the batches of an endpoint, the oldest first."""
        rows = self._database.execute(
            "SELECT token, begun_s, file, batch, was_read FROM batches WHERE url = ? ORDER BY begun_s", (_hash(url),)
        ).fetchall()
        return [
            BatchRecord(token, begun_s, self._sizes(token), file, batch, bool(was_read))
            for token, begun_s, file, batch, was_read in rows
        ]

    def begin(self, url: str, record: BatchRecord) -> None:
        """Store a batch that is about to be sent."""
        with self._database:
            self._database.execute("BEGIN")
            self._database.execute(
                "INSERT INTO batches VALUES (?, ?, ?, NULL, NULL, 0)", (record.token, _hash(url), record.begun_s)
            )
            self._database.executemany(
                "INSERT OR REPLACE INTO calls VALUES (?, ?, ?)",
                ((id, record.token, size) for id, size in record.sizes.items()),
            )

    def update(self, record: BatchRecord) -> None:
        """Store the ids that the endpoint gave, and whether the replies were read."""
        self._database.execute(
            "UPDATE batches SET file = ?, batch = ?, was_read = ? WHERE token = ?",
            (record.file, record.batch, record.was_read, record.token),
        )

    def forget(self, record: BatchRecord) -> None:
        """Delete a batch."""
        with self._database:
            self._database.execute("BEGIN")
            self._database.execute("DELETE FROM calls WHERE token = ?", (record.token,))
            self._database.execute("DELETE FROM batches WHERE token = ?", (record.token,))

    def _sizes(self, token: str) -> dict[str, int]:
        return dict(self._database.execute("SELECT id, bytes FROM calls WHERE token = ?", (token,)).fetchall())


def _hash(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def _unusable(path: Path, error: Exception) -> ConfigError:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return ConfigError(
            f"{path}: another command with --batch uses it; wait for its end, or give this one a file of its own with "
            "evaluators.judge.cache.path"
        )
    return ConfigError(
        f"{path}, where --batch notes its batches, cannot be used: {type(error).__name__}; set "
        "evaluators.judge.cache.path to a folder that can be written to, or move the file away: then its batches are "
        "paid for again"
    )
