"""ragtide's own processes, as a test starts and kills them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ragtide.sinks.settings import ClickHouseSettings
from tests.infra import telemetry


def write_settings(path: Path, bootstrap: str, topic: str, clickhouse: ClickHouseSettings) -> Path:
    """A settings file for the `fast` lane on test infrastructure."""
    path.write_text(
        f"""
[kafka]
bootstrap_servers = "{bootstrap}"
topics = ["{topic}"]
dead_letter_topic = "{topic}.dead"
jobs_topic = "{topic}.jobs"
group_prefix = "{topic}"
session_timeout_s = 6
heartbeat_s = 1
rebalance_timeout_s = 8

[worker]
heartbeat_s = 1
block_rows = 1000

[evaluators]
enabled = ["operations", "inputs"]

[clickhouse]
url = "{clickhouse.url}"
user = "{clickhouse.user}"
password = "{clickhouse.password.get_secret_value()}"
database = "{clickhouse.database}"

[windows]
out_of_orderness_s = 2
heartbeat_timeout_s = 5

[jobs]
every_s = 1

[telemetry]
port = 0
jobs_port = 0
"""
    )
    return path


RAGTIDE = (str(Path(sys.executable).with_name("ragtide")),)


class Ragtide:
    """One `ragtide` command as a process; its output is in `log`. `program` may be another one of its kind."""

    def __init__(self, *arguments: str, config: Path, log: Path, program: Sequence[str] = RAGTIDE) -> None:
        self.name = arguments[0]
        self._log = log.open("ab")
        self.process = subprocess.Popen(
            [*program, *arguments],
            env={**os.environ, "RAGTIDE_CONFIG": str(config)},
            stdout=self._log,
            stderr=self._log,
        )

    def metric(self, name: str) -> float:
        """The sum of a metric's samples, from /metrics of this process; `log` must be its own."""
        return telemetry.metric(Path(self._log.name).read_text(), name)

    def asked(self, path: str) -> str:
        """What it answers over HTTP, whatever the status; empty before it listens."""
        return telemetry.asked(Path(self._log.name).read_text(), path)

    def kill(self) -> None:
        """Kill -9: nothing is flushed, nothing committed."""
        self.process.kill()
        self.process.wait(10)
        self._log.close()

    def stop(self) -> int:
        """SIGTERM; returns the exit status once it drained."""
        self.process.terminate()
        code = self.process.wait(60)
        self._log.close()
        return code


def wait_until(done: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Poll `done`; fails saying `what` did not happen in time."""
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.1)
