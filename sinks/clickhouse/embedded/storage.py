"""The engine's data: after a failed write nothing is acknowledged, and the data are reopened once the disk works.

chDB (4.4) goes on where a write fails and says nothing (`src/IO/WriteBufferFromFileDescriptor.cpp` of chdb-io/chdb has
ClickHouse's exception commented out); it only counts. A part cut short is put aside when the engine opens its data,
so closing it at once also keeps merges from replacing good parts by bad ones.
"""

import contextlib
import errno
import importlib
import logging
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.embedded.errors import EngineError

_FAILED_WRITES = "SELECT value FROM system.events WHERE event = 'WriteBufferFromFileDescriptorWriteFailed'"
_PROBE_BYTES = 1 << 20  # what the engine itself wants free before it writes a part
_CHECK_EVERY_S = 1.0
_log = logging.getLogger(__name__)


class Storage:
    """Connections to the engine of one directory, from any thread. One process may hold a directory."""

    def __init__(self, data: Path, incoming: Path, configuration: Path) -> None:
        try:
            self._chdb = importlib.import_module("chdb")
        except ModuleNotFoundError:
            raise ConfigError("the embedded ClickHouse is not installed: pip install 'ragtide[local]'") from None
        self._data = data
        self._at = f"{data}?config-file={configuration}"
        self._incoming = incoming
        self._lock = threading.Lock()
        self._users = 0
        self._damaged = False
        self._check_at = 0.0
        self._keeper: Any = None
        try:
            self._open()
        except RuntimeError as error:
            raise ConfigError(f"the embedded ClickHouse cannot open {data}: {error}") from None

    @contextlib.contextmanager
    def connection(self, *, reads: bool) -> Iterator[Any]:
        """Open a connection; raise EngineError like the engine, and if the disk failed meanwhile.

        Failed writes are counted after every statement, but only once a second after one that `reads`: to count them
        costs more than most such statements.
        """
        self._enter()
        try:
            try:
                with contextlib.closing(self._chdb.connect(self._at)) as connection:
                    yield connection
            except (self._chdb.ChdbError, RuntimeError) as error:
                raise EngineError(str(error)) from None
            finally:
                if not reads or time.monotonic() >= self._check_at:
                    self._check_writes()
        finally:
            self._leave()

    def probe(self) -> None:
        """Check that the disk accepts writes; raise EngineError."""
        try:
            with tempfile.TemporaryFile(dir=self._incoming) as file:
                file.write(bytes(_PROBE_BYTES))
        except OSError as error:
            refuse(error)

    def close(self) -> None:
        """Release the directory; statements must have ended."""
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def _open(self) -> None:
        self._keeper = self._chdb.connect(self._at)  # the engine lives as long as one connection does
        self._identity = _identity(self._data)
        self._failed = self._failed_writes()
        self._damaged = False

    def _enter(self) -> None:
        with self._lock:
            if self._damaged:
                if self._users:
                    refuse(OSError(errno.EIO, "a write failed; the data is being closed"))
                self.probe()
                if _identity(self._data) != self._identity:
                    refuse(OSError(errno.ENOENT, f"{self._data} is not where it was"))
                try:
                    self._open()
                except RuntimeError as error:
                    refuse(OSError(errno.EIO, f"the data cannot be opened: {error}"))
                _log.warning("the disk accepts writes again; reopened %s", self._data)
            self._users += 1

    def _check_writes(self) -> None:
        self._check_at = time.monotonic() + _CHECK_EVERY_S
        if self._failed_writes() == self._failed and _identity(self._data) == self._identity:
            return
        if not self._damaged:
            _log.error("a write to disk failed; unconfirmed inserts are not acknowledged, closing %s", self._data)
        self._damaged = True
        refuse(OSError(errno.EIO, "the disk failed a write"))

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._damaged and not self._users:
                self.close()

    def _failed_writes(self) -> int:
        """Failed writes since this process started, read on a separate connection without a statement's settings."""
        with contextlib.closing(self._chdb.connect(self._at)) as connection:
            return int(bytes(connection.query(_FAILED_WRITES, "TabSeparated").bytes()) or 0)


def refuse(error: OSError) -> NoReturn:
    """Raise the error as ClickHouse does: clients retry later."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    code, name = (243, "NOT_ENOUGH_SPACE") if full else (75, "CANNOT_WRITE_TO_FILE_DESCRIPTOR")
    raise EngineError(f"Code: {code}. DB::Exception: {error.strerror}. ({name})") from None


def _identity(path: Path) -> tuple[int, int] | None:
    """Identity of the directory, which differs after its disk was unmounted."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
