"""Child processes that end with this one: each in a session of its own, its output in a log file."""

import logging
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ragtide.stream.local.child import launcher

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Child:
    """One process. Ctrl-C does not reach it, only `stop` does; it is killed should this process die."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it. Call from a thread that lives as long as the child should: the kernel ties them together."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*launcher(), *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(self.environment),
                start_new_session=True,
            )

    @property
    def pid(self) -> int | None:
        """Of the process, once started."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll() if self._process else None

    def ask_to_stop(self) -> None:
        """SIGTERM, if it still runs."""
        if self._process and self._process.poll() is None:
            self._process.terminate()

    def wait(self, timeout_s: float) -> None:
        """Until it has ended; killed after `timeout_s`."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            _log.warning("%s did not stop within %.0f s and was killed", self.name, timeout_s)
            self._process.kill()
            self._process.wait()

    def last_lines(self, count: int = 5) -> list[str]:
        """The end of its log."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return text.splitlines()[-count:]


class Children:
    """Several children that start together and stop together."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = tuple(children)

    def __iter__(self) -> Iterator[Child]:
        return iter(self._children)

    def start(self) -> None:
        """Start all."""
        for child in self._children:
            child.start()

    def ended(self) -> Child | None:
        """A child that ended unexpectedly, if any did."""
        return next((child for child in self._children if child.exit_code is not None), None)

    def stop(self, timeout_s: float = 15.0) -> None:
        """Ask all to stop, wait for all, kill what is left after `timeout_s` in all."""
        deadline = time.monotonic() + timeout_s
        for child in self._children:
            child.ask_to_stop()
        for child in self._children:
            child.wait(max(deadline - time.monotonic(), 0.1))
