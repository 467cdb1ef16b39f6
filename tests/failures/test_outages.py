"""ClickHouse, its disk or the brokers gone for a minute: processes stay up, everything drains, windows are right.

The three outages happen to three installations in the same minute. While ClickHouse is gone input does not end: more
waits than may be in flight, and memory stays within what the settings state.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.settings.sections import MEMORY_PER_BYTE_IN_FLIGHT
from tests.chaos.ledger import Ledger, make
from tests.chaos.processes import Ragtide
from tests.chaos.windows import stored_windows
from tests.failures.disk import refusing_writes
from tests.failures.memory import Memory
from tests.failures.site import Message, Sections, of
from tests.failures.site import Site as Installation
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import Broker

pytestmark = [pytest.mark.broker, pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.chaos]
pytestmark += [pytest.mark.timeout(360)]

OUTAGE_S = 60
COUNT = 3000
POLLS_DUE_S = 10.0
IN_FLIGHT = 1 << 20
FULL = 1.5  # and a fetch, a quarter of it on the wire
# Fetching stops soon after the sink does, and six poll intervals pass before it goes on.
TIGHT: Sections = {
    "kafka": {"max_poll_interval_s": POLLS_DUE_S},
    "worker": {"in_flight_bytes": IN_FLIGHT, "slice_records": 50, "block_wait_ms": 50, "heartbeat_s": 0.5},
}


@dataclass
class Scene:
    """An installation under traffic, and what will be taken away from it."""

    site: Installation
    database: Database
    ledger: Ledger
    take_away: Callable[[], object]
    give_back: Callable[[], object]
    worker: Ragtide
    jobs: Ragtide
    memory: Memory = field(init=False)
    sent: int = 0

    def __post_init__(self) -> None:
        self.memory = Memory(self.worker.process.pid)

    def send(self, count: int) -> None:
        """The next messages."""
        messages = self.ledger.messages[self.sent : self.sent + count]
        self.site.produce([Message(_bulky(sent.message()), sent.trace_id.encode()) for sent in messages])
        self.sent += len(messages)

    def distinct(self) -> int:
        return int(self.database.rows("SELECT uniqExact(trace_id) AS n FROM traces")[0]["n"])

    def wait_for_the_first(self) -> None:
        """Some of what was sent is stored."""
        self.site.until(lambda: self.distinct() > COUNT // 20, "the first traces stored")

    def send_until(self, ends: float, least: int) -> None:
        """The next messages: as many as that at once, and then a few of them every second."""
        self.send(least)
        while time.monotonic() < ends:
            time.sleep(1)
            self.send(least // OUTAGE_S)
            self.memory.look()

    def is_committed(self) -> bool:
        """Whether everything that was sent is."""
        self.memory.look()
        return self.site.committed() == self.sent

    def check_that_everything_drains(self) -> None:
        """By the same processes as before."""
        self.send(len(self.ledger.messages))
        self.site.until(self.is_committed, "every offset committed", 120)
        assert self.distinct() == COUNT
        expected = self.ledger.windows()
        self.site.until(lambda: stored_windows(self.database) == expected, "windows right", 90)
        assert self.worker.stop() == 0, self.site.logs()
        assert self.jobs.stop() == 0, self.site.logs()
        assert self.database.rows("SELECT * FROM dead_letters") == []


def _bulky(trace: bytes) -> bytes:
    """As large as traces are: what is sent during an outage takes more room than there is."""
    return trace[:-1] + b', "attributes": {"note": "%s"}}' % (b"a" * 2000)


@contextmanager
def staged(
    folder: Path,
    broker: Broker,
    seed: int,
    sections: Sections,
    outage: Callable[[EmbeddedClickHouse], tuple[Callable[[], object], Callable[[], object]]],
) -> Iterator[Scene]:
    """A ClickHouse, a worker and jobs, with half of the traffic sent; `outage` says what to take and to give back."""
    folder.mkdir()
    with EmbeddedClickHouse(folder / "clickhouse") as server:
        database = Database(server.settings)
        migrate(database, RetentionSettings())
        site = of(folder, broker, database, {"evaluators": {"enabled": ["operations", "inputs"]}, **sections})
        with site.up():
            ledger = make(COUNT, seed, datetime.now(UTC))
            scene = Scene(site, database, ledger, *outage(server), site.worker(), site.jobs())
            scene.send(len(ledger.messages) // 2)
            yield scene
        database.close()


@pytest.fixture(scope="module")
def after_a_minute(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Scene]]:
    """Scenes by what was gone; each has it back."""
    folder = tmp_path_factory.mktemp("outages")
    with ExitStack() as stack, KafkaNode(folder / "kafka") as kafka:
        disk = ExitStack()

        def fill_disk(server: EmbeddedClickHouse) -> tuple[Callable[[], object], Callable[[], object]]:
            return lambda: disk.enter_context(refusing_writes(server.pid)), disk.close

        scenes = {
            "clickhouse": stack.enter_context(
                staged(folder / "1", broker, 1, TIGHT, lambda server: (server.kill, server.start))
            ),
            "disk": stack.enter_context(staged(folder / "2", broker, 2, {}, fill_disk)),
            "broker": stack.enter_context(staged(folder / "3", kafka, 3, {}, lambda _: (kafka.kill, kafka.restart))),
        }
        for scene in scenes.values():
            scene.wait_for_the_first()
        pressed = scenes["clickhouse"]
        pressed.site.until(pressed.is_committed, "what it holds in usual times")
        pressed.memory = Memory(pressed.worker.process.pid)
        scenes["broker"].send(COUNT // 4)  # so that it goes while something is under way
        for scene in scenes.values():
            scene.take_away()
        ends = time.monotonic() + OUTAGE_S
        scenes["disk"].send(COUNT // 4)
        pressed.send_until(ends, COUNT // 4)
        for scene in scenes.values():
            assert scene.worker.process.poll() is None, scene.site.logs()
            assert scene.jobs.process.poll() is None, scene.site.logs()
        assert pressed.worker.metric("ragtide_fetch_paused_seconds_total") > POLLS_DUE_S, "the buffers lasted"
        assert IN_FLIGHT <= pressed.worker.metric("ragtide_in_flight_bytes") < FULL * IN_FLIGHT
        with suppress(Transient):  # it may open its data anew at this very moment
            assert scenes["disk"].distinct() < COUNT, "the disk took writes"
        for scene in scenes.values():
            scene.give_back()
        yield scenes


@pytest.mark.parametrize("gone", ["clickhouse", "disk", "broker"])
def test_gone_for_a_minute_everything_drains_afterwards(after_a_minute: dict[str, Scene], gone: str) -> None:
    scene = after_a_minute[gone]
    scene.check_that_everything_drains()
    if gone == "clickhouse":
        assert scene.memory.grown <= MEMORY_PER_BYTE_IN_FLIGHT * IN_FLIGHT
