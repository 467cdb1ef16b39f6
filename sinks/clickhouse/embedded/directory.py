"""What lies in an embedded server's directory beside the data: its lock, its key, its port and its log."""

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from evaluators.errors import ConfigError


class DataDirectory:
    """Names the files; only the owner of the directory can read the key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "data"
        self.log = path / "server.log"
        self._lock = path / "lock"
        self._key = path / "key"
        self._port = path / "port"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """The directory is this process's own; ConfigError where another process serves it.

        The kernel gives the lock back when the process dies, however it dies.
        """
        if odd := sorted(set(str(self.path)) & set("*?{}")):
            raise ConfigError(f"a data directory must not have {' '.join(odd)} in its path: {self.path}")
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigError(f"cannot use {self.path} as data directory: {error.strerror}") from None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConfigError(
                    f"{self.path} is served by another process: use that one, stop it, or choose another directory"
                ) from None
            yield
        finally:
            os.close(handle)

    def key(self) -> str:
        """The key that clients send as password; made at the first call, the same ever after."""
        with contextlib.suppress(FileExistsError):
            draft = self._key.with_suffix(f".{os.getpid()}")
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_urlsafe(32))
            try:
                os.link(draft, self._key)  # never seen half-written, and the first of two writers wins
            finally:
                draft.unlink()
        return self._key.read_text()

    def emptied_incoming(self) -> Path:
        """Where inserts lie while they are read; what a killed server left there was never acknowledged."""
        incoming = self.path / "incoming"
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir(mode=0o700)
        return incoming

    def write_port(self, port: int) -> None:
        """Say where this process listens; readers never see half a line."""
        draft = self._port.with_suffix(".new")
        draft.write_text(f"{port} {os.getpid()}\n")
        draft.replace(self._port)

    def read_port(self, pid: int | None = None) -> int | None:
        """Where the server (with this pid) listens, or listened: a kill leaves the file. None where it never did."""
        try:
            port, owner = self._port.read_text().split()
        except FileNotFoundError:
            return None
        return int(port) if pid is None or pid == int(owner) else None

    def forget_port(self) -> None:
        """Nobody listens."""
        self._port.unlink(missing_ok=True)
