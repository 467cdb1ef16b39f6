"""Files of an embedded server beside the data: lock, keys, port and log."""

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from ragtide.evaluators.errors import ConfigError


class DataDirectory:
    """Names the files; only the owner of the directory can read them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "data"
        self.log = path / "server.log"
        self._lock = path / "lock"
        self.key_file = path / "key"
        self.reader_key_file = path / "reader-key"
        self._port = path / "port"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the directory for this process; ConfigError if another process serves it.

        The kernel gives the lock back when the process dies, however it dies.
        """
        if odd := sorted(set(str(self.path)) & set("*?{}&")):
            raise ConfigError(f"a data directory must not have {' '.join(odd)} in its path: {self.path}")
        if not str(self.path).isprintable():  # the engine's configuration names it
            raise ConfigError(f"a data directory must not have control characters in its path: {self.path}")
        try:
            self._make_private()
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

    def _make_private(self) -> None:
        """Make the directory private, and the files of an existing one too."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.path.stat().st_mode & stat.S_ISVTX:
            raise ConfigError(f"{self.path} is shared by users of this machine: choose a directory of its own")
        self.path.chmod(0o700)
        for path in self.path.iterdir():
            if not path.is_symlink():
                path.chmod(0o700 if path.is_dir() else 0o600)

    def key(self) -> str:
        """Return the key for reading and writing, the clients' password; made at the first call, then always it."""
        return _secret(self.key_file)

    def reader_key(self) -> str:
        """Return the key that reads only; made at the first call, then always it."""
        return _secret(self.reader_key_file)

    def make_empty(self, name: str) -> Path:
        """Make an empty folder for this run; what a killed server left there was never acknowledged."""
        folder = self.path / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        return folder

    def write_port(self, port: int) -> None:
        """Write the port of this process; readers never see half a line."""
        draft = self._port.with_suffix(".new")
        draft.write_text(f"{port} {os.getpid()}\n")
        draft.replace(self._port)

    def read_port(self, pid: int | None = None) -> int | None:
        """Port of the server (with this pid), also of a killed one; None if it never listened."""
        try:
            port, owner = self._port.read_text().split()
        except FileNotFoundError:
            return None
        return int(port) if pid is None or pid == int(owner) else None

    def forget_port(self) -> None:
        """Delete the port's file."""
        self._port.unlink(missing_ok=True)


def _secret(path: Path) -> str:
    with contextlib.suppress(FileExistsError):
        draft = path.with_suffix(f".{os.getpid()}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(32))
        try:
            os.link(draft, path)  # never seen half-written, and the first of two writers wins
        finally:
            draft.unlink()
    return path.read_text()
