"""An installation whose processes are forked, and all that was sent to it."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ragtide.sinks.clickhouse.database import Database
from tests.chaos.crash_points_model import expected_rows, sent_dead_letters, stored_dead_letters, stored_rows
from tests.chaos.crash_points_process import Ending, Part, forked
from tests.chaos.ledger import Ledger, Sent
from tests.chaos.windows import stored_windows
from tests.failures.site import Message, Place, Sections, Site
from tests.infra.forked import Forked
from tests.stream.core.traffic import Broker

# A session of seconds, so that a killed member is soon missed; slices so small that there are many.
SECTIONS: Sections = {
    "kafka": {"session_timeout_s": 3.0, "heartbeat_s": 0.5, "rebalance_timeout_s": 6.0},
    "worker": {"slice_records": 60, "block_wait_ms": 20, "heartbeat_s": 0.5},
    "evaluators": {"enabled": ["operations", "inputs"]},
    "windows": {"out_of_orderness_s": 2, "heartbeat_timeout_s": 10, "idle_after_s": 1, "sizes_s": [60]},
    "rules": {"k": 1, "m": 1, "min_sample": 5},
    "jobs": {"every_s": 1, "reconcile_every_s": 1, "checks_every_s": 10},
}
_LOOK_S = 0.3  # a look costs the brokers or the database tens of milliseconds
_STEADY_S = 0.1
_AT_ONCE = 20


@dataclass
class Scene:
    """A site, its database, and the ledger of what was sent so far. One thread sends at a time."""

    site: Site
    database: Database
    sent: Ledger = field(default_factory=Ledger)
    poison: dict[Place, bytes] = field(default_factory=dict)
    _processes: list[Forked] = field(default_factory=list)

    def start(self, part: Part, ending: Ending | None = None) -> Forked:
        log = self.site.directory / f"{part}-{len(self._processes)}.log"
        process = forked(part, self.site.config, log, ending)
        self._processes.append(process)
        return process

    def send(self, messages: Sequence[Sent], poison: Sequence[bytes] = ()) -> None:
        """With the poison spread among them."""
        values: list[Sent | bytes] = [*messages]
        for number, value in enumerate(poison):
            values.insert((number + 1) * len(messages) // (len(poison) + 1) + number, value)
        places = self.site.produce([Message(v) if isinstance(v, bytes) else _keyed(v) for v in values])
        self.sent.messages.extend(messages)
        self.poison |= {at: v for at, v in zip(places, values, strict=True) if isinstance(v, bytes)}

    @contextmanager
    def steadily(self, messages: Sequence[Sent]) -> Iterator[None]:
        """Sends them bit by bit meanwhile, as many as come to it."""
        over = threading.Event()

        def send() -> None:
            for first in range(0, len(messages), _AT_ONCE):
                if over.wait(_STEADY_S):
                    return
                self.send(messages[first : first + _AT_ONCE])

        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def left(self) -> int:
        """Records whose offset is not committed."""
        return len(self.sent.messages) + len(self.poison) - self.site.committed()

    def owners(self) -> set[int]:
        """Process ids of the workers that last spoke of a partition."""
        rows = self.database.rows("SELECT DISTINCT worker FROM progress FINAL")
        return {int(row["worker"].split(":")[1]) for row in rows}

    def until_owned_by(self, *workers: Forked) -> None:
        """Wait until these workers, and no other ones, own partitions."""
        wanted = {worker.pid for worker in workers}
        self.until(lambda: self.owners() == wanted, f"owned by {wanted}")

    def marks(self) -> int:
        """Of lane `fast`, that wait for a roll-up; nobody runs the other lanes here."""
        waiting = "SELECT count() AS n FROM dirty_windows FINAL WHERE done = 0 AND lane = 'fast'"
        return int(self.database.rows(waiting)[0]["n"])

    def until_all_is_committed(self) -> None:
        self.until(lambda: self.left() == 0, "every offset committed")

    def until_windows_are_right(self) -> None:
        """And no mark is left."""
        self.until(lambda: self.marks() == 0 and stored_windows(self.database) == self.sent.windows(), "windows right")

    def until_said(self, process: Forked, line: str) -> None:
        self.until(lambda: process.says(line), line)

    def until(self, done: Callable[[], bool], what: str, timeout_s: float = 100) -> None:
        """Wait for it, with a word of the logs where it does not come."""
        deadline = time.monotonic() + timeout_s
        while not done():
            assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}\n{self.site.logs()}"
            time.sleep(_LOOK_S)

    def check_what_is_stored(self) -> None:
        """Every trace, text and score as sent; windows too; each poison once, as it was."""
        assert stored_rows(self.database) == expected_rows(self.sent)
        assert stored_windows(self.database) == self.sent.windows()
        assert stored_dead_letters(self.database) == dict.fromkeys(self.poison, 1)
        assert sent_dead_letters(self.site.broker, self.site.dead_topic) == self.poison

    def end(self) -> None:
        for process in self._processes:
            process.kill()


@contextmanager
def staged(
    directory: Path, broker: Broker, database: Database, partitions: int = 2, block_rows: int = 10_000
) -> Iterator[Scene]:
    """Topics made, nothing started; everything started is killed afterwards."""
    directory.mkdir(exist_ok=True)
    sections = {**SECTIONS, "worker": {**SECTIONS["worker"], "block_rows": block_rows}}
    site = Site(directory, broker, database.settings, sections, partitions)
    with site.up():
        scene = Scene(site, database)
        try:
            yield scene
        finally:
            scene.end()


def _keyed(sent: Sent) -> Message:
    return Message(sent.message(), sent.trace_id.encode())
