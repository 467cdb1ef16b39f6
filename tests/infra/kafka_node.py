"""Apache Kafka 4.1 as a test's own process, through deploy/kafka/kafka.sh."""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.infra.ports import free_ports

SCRIPT = Path(__file__).parents[2] / "deploy" / "kafka" / "kafka.sh"


class KafkaNode:
    """One KRaft node on loopback; its data stays under `directory` over kill and restart."""

    jvm_options = ""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_ports(2)  # the second is its controller's

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the broker's process."""
        return int((self.directory / "pid").read_text())

    def start(self) -> None:
        """Bring the jars if need be, format, run; returns when the node listens."""
        self._script("start", str(self.directory), str(self.port))

    def stop(self) -> None:
        """SIGTERM and wait."""
        self._script("stop", str(self.directory))

    def kill(self) -> None:
        """Kill -9."""
        self._script("kill", str(self.directory))

    def restart(self) -> None:
        """Start again with the same data and port."""
        self._script("restart", str(self.directory))

    def _script(self, *arguments: str) -> None:
        done = subprocess.run(
            [str(SCRIPT), *arguments],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
            env={**os.environ, "KAFKA_OPTS": self.jvm_options},
        )
        assert done.returncode == 0, done.stderr

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
