"""The embedded server as a child process."""

import http
import http.client
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from pydantic import SecretStr

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.embedded.confinement import harmless_environment
from ragtide.sinks.clickhouse.embedded.directory import DataDirectory
from ragtide.sinks.settings import ClickHouseSettings

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 20.0


class EmbeddedClickHouse:
    """Answers when `start` returns, is gone when `stop` or `kill` returns, and dies with its parent.

    Data, key and log lie under `directory`. Port 0 picks a free one at the first start and keeps it at the next.
    """

    def __init__(self, directory: Path, port: int = 0) -> None:
        self._files = DataDirectory(directory)
        self._process: subprocess.Popen[bytes] | None = None
        self.port = port

    @property
    def settings(self) -> ClickHouseSettings:
        """Settings to reach the running server, with its key."""
        port = self.port or self._files.read_port()
        if port is None:
            raise ConfigError(f"no embedded ClickHouse runs on {self._files.path}: start one with `ragtide local`")
        return ClickHouseSettings(url=f"http://127.0.0.1:{port}", user="default", password=SecretStr(self._files.key()))

    @property
    def reader_settings(self) -> ClickHouseSettings:
        """Settings to reach the running server read-only, with the reader key."""
        return self.settings.model_copy(update={"password": SecretStr(self._files.reader_key())})

    @property
    def pid(self) -> int | None:
        """Of the server's process while it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start and wait until it answers; raise ConfigError with the obstacle."""
        if self._process is not None:
            raise RuntimeError("the server is already started")
        self._files.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._files.log.open("ab") as log:
            log_start = log.tell()
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "ragtide.sinks.clickhouse.embedded"),
                    *(str(self._files.path), str(self.port), "--with-parent"),
                ],
                stdin=subprocess.PIPE,  # closed by the kernel when this process dies, whichever way
                stdout=log,
                env=harmless_environment(),
                stderr=log,
                start_new_session=True,  # Ctrl-C is the parent's to handle: it may still have to write
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            code = self._process.poll()
            if code is not None or time.monotonic() > deadline:
                self.kill()
                raise ConfigError(self._last_log_lines(log_start, code))
            time.sleep(0.02)

    def stop(self) -> None:
        """SIGTERM: statements under way end first."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    def kill(self) -> None:
        """SIGKILL; acknowledged rows are there at the next start."""
        if self._process is None:
            return
        self._process.kill()
        self._reap()

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
            if self._process.stdin:
                self._process.stdin.close()
            self._process = None

    def _answers(self) -> bool:
        port = self._files.read_port(self.pid)
        if port is None:
            return False
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/ping")
            answers = connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()
        self.port = port
        return answers

    def _last_log_lines(self, log_start: int, code: int | None) -> str:
        lines = self._files.log.read_bytes()[log_start:].decode(errors="replace").strip().splitlines()
        if code is None:
            return f"the embedded ClickHouse did not answer in {_START_TIMEOUT_S:.0f} s; its log is {self._files.log}"
        if lines and lines[-1].startswith("error: "):
            return lines[-1].removeprefix("error: ")
        return f"the embedded ClickHouse ended with code {code}; its log is {self._files.log}"

    def __enter__(self) -> "EmbeddedClickHouse":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
