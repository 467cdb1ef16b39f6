"""Processes forked from a server that has everything imported: at work in half a second instead of three or four."""

import multiprocessing
import os
import pkgutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

import ragtide.evaluators.builtin as builtin
from ragtide.stream.sigterm import exit_at_sigterm

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        "ragtide.stream.assembly",
        "ragtide.stream.worker.lane",  # what a worker imports when it starts
        "ragtide.stream.worker.process",
        "ragtide.stream.jobs_process",
        *(found.name for found in pkgutil.iter_modules(builtin.__path__, f"{builtin.__name__}.")),
        "apscheduler.schedulers.background",
        "pandas",  # the client of ClickHouse looks for it, and takes a second where it is there
    ]
)
_ONE_AT_A_TIME = threading.Lock()  # starting one looks after all others, and an exit status can be read once


class Forked:
    """`work(*arguments)` as a process, whose exit status is what it returns; what it says is in `log`.

    In use like a `subprocess.Popen`.
    """

    def __init__(self, log: Path, work: Callable[..., int], *arguments: object) -> None:
        self.log = log
        self._begun = _SERVER.Event()
        self._process = _SERVER.Process(target=_run, args=(log, self._begun, work, arguments), daemon=True)
        with _ONE_AT_A_TIME:
            self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """How it ended: an exit status, or the negative number of a signal; None while it lives."""
        with _ONE_AT_A_TIME:
            return self._process.exitcode

    def wait(self, timeout_s: float = 60.0) -> int:
        """How it ended, once it did."""
        deadline = time.monotonic() + timeout_s
        while (status := self.poll()) is None:
            assert time.monotonic() < deadline, f"still there after {timeout_s:g} s"
            time.sleep(0.05)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def stop(self, timeout_s: float = 60.0) -> int:
        """SIGTERM, once the process handles it as the command does; its exit status."""
        assert self._begun.wait(timeout_s), f"not begun after {timeout_s:g} s"
        self.send_signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """Kill -9, also where it stands still; nothing where it is gone."""
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)
            self.wait()

    def says(self, line: str) -> bool:
        return self.log.exists() and line in self.log.read_text()


def _run(log: Path, begun: Event, work: Callable[..., int], arguments: tuple[object, ...]) -> None:
    exit_at_sigterm()
    begun.set()
    with log.open("ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.exit(work(*arguments))
