"""`ragtide jobs` as a process, as a user starts it."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ragtide.sinks.clickhouse.database import Database
from tests.infra import telemetry
from tests.infra.fresh_database import reached

Found = TypeVar("Found")


@dataclass
class JobsProcess:
    """`ragtide jobs` and its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        return self.log.read_text()

    def asked(self, path: str) -> str:
        """What it answers over HTTP, whatever the status; empty before it listens."""
        return telemetry.asked(self.said(), path)

    def wait_for(self, found: Callable[[], Found]) -> Found:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and self.process.poll() is None:
            result = found()
            if result:
                return result
            time.sleep(0.2)
        raise AssertionError(self.said())


@contextmanager
def jobs_process(
    database: Database, bootstrap: str, log: Path, *, name: str = "", topic: str = "", **variables: str
) -> Iterator[JobsProcess]:
    """Running inside the block. Those of one `name` have a topic and a group in common; `variables` are settings'."""
    name = name or uuid.uuid4().hex[:8]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAGTIDE_")} | {
        "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": bootstrap,
        "RAGTIDE_KAFKA__JOBS_TOPIC": topic or f"jobs-{name}",
        "RAGTIDE_KAFKA__GROUP_PREFIX": f"ragtide-{name}",
        **reached(database),
        "RAGTIDE_TELEMETRY__JOBS_PORT": "0",
        "RAGTIDE_TELEMETRY__LOG_FORMAT": "text",
        "RAGTIDE_JOBS__EVERY_S": "1",
        "RAGTIDE_WINDOWS__OUT_OF_ORDERNESS_S": "0",
        "RAGTIDE_RULES__K": "1",
        **variables,
    }
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "ragtide.stream", "jobs"], env=environment, stderr=out, stdout=out
        )
    try:
        yield JobsProcess(process, log)
    finally:
        process.kill()
        process.wait(10)
