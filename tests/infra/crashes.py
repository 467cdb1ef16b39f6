"""Why a worker of a run (pytest-xdist) crashed: its exit status and the Python stacks then, in the summary."""

import faulthandler
import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

_FOLDER = "PYTEST_CRASHES"  # in the environment of workers; ragtide refuses names of its own that it does not know
_WAIT_S = 10


def observe(config: pytest.Config) -> None:
    """Observe the workers in the controller; in a worker, write stacks at SIGSEGV and the like."""
    if config.pluginmanager.hasplugin("dsession"):
        config.pluginmanager.register(_Crashes())
    elif (folder := os.environ.get(_FOLDER)) and hasattr(config, "workerinput"):
        file = (Path(folder) / config.workerinput["workerid"]).open("w")
        config.add_cleanup(file.close)
        faulthandler.enable(file)


class _Crashes:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="crashes-")
        self._statuses: dict[str, int | None] = {}
        os.environ[_FOLDER] = self._folder.name

    def pytest_testnodedown(self, node: "WorkerController", error: object) -> None:
        """A worker ended, with an error if it crashed."""
        if error:
            self._statuses[node.gateway.id] = None
            with suppress(subprocess.TimeoutExpired):  # it was interrupted, and goes on
                self._statuses[node.gateway.id] = node.gateway._io.popen.wait(_WAIT_S)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what is known of each crash."""
        for worker, status in self._statuses.items():
            terminalreporter.section(f"{worker} ended with status {status}")
            file = Path(self._folder.name) / worker
            stacks = file.read_text() if file.exists() else ""
            terminalreporter.write(stacks or "no stacks: it exited, or was killed from outside\n")
