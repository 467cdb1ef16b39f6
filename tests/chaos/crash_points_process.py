"""Workers and jobs as processes that may end at a crash point.

They are forked from a server that has everything imported: a process is at work in half a second instead of four.
"""

import multiprocessing
import os
import pkgutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Literal, NamedTuple

import evaluators.builtin as builtin
import stream.lanes.serve  # noqa: F401  # for the server: what a worker imports when it starts
from stream.lanes.worker import run_lane
from stream.scheduler import run as run_jobs
from stream.settings import load
from tests.chaos.crash_points import arm

Part = Literal["worker", "jobs"]

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        __name__,
        *(found.name for found in pkgutil.iter_modules(builtin.__path__, f"{builtin.__name__}.")),
        "apscheduler.schedulers.background",
        "pandas",  # the client of ClickHouse looks for it, and takes a second where it is there
    ]
)
_ONE_AT_A_TIME = threading.Lock()  # starting one looks after all others, and an exit status can be read once


class Ending(NamedTuple):
    """At which crash point, and by which signal."""

    point: str
    number: signal.Signals


class Forked:
    """A worker of lane `fast`, or the jobs; what it says is in `log`."""

    def __init__(self, part: Part, config: Path, log: Path, ending: Ending | None = None) -> None:
        self.log = log
        self._process = _SERVER.Process(target=_run, args=(part, config, log, ending), daemon=True)
        with _ONE_AT_A_TIME:
            self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def status(self) -> int | None:
        """How it ended: an exit status, or the negative number of a signal; None while it lives."""
        with _ONE_AT_A_TIME:
            return self._process.exitcode

    def says(self, line: str) -> bool:
        return self.log.exists() and line in self.log.read_text()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def stop(self, timeout_s: float = 60.0) -> int:
        """SIGTERM; its exit status."""
        self.signal(signal.SIGTERM)
        return self.ended(timeout_s)

    def ended(self, timeout_s: float = 60.0) -> int:
        """Its exit status, once it ended by itself or by a signal."""
        deadline = time.monotonic() + timeout_s
        while (status := self.status) is None:
            assert time.monotonic() < deadline, f"still there after {timeout_s:g} s"
            time.sleep(0.05)
        return status

    def kill(self) -> None:
        """Kill -9, also where it stands still; nothing where it is gone."""
        if self.status is None:
            self.signal(signal.SIGKILL)
            self.ended()


def _run(part: Part, config: Path, log: Path, ending: Ending | None) -> None:
    with log.open("ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    loaded = load(config, {})
    if ending is not None:
        arm(*ending)
    sys.exit(run_lane(loaded.settings, "fast", 0) if part == "worker" else run_jobs(loaded))
