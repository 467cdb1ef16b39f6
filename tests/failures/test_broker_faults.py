"""A broker that answers nobody for longer than a session lasts, and one that is killed and has its log afterwards."""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import get_args

import psutil
import pytest

from ragtide.evaluators.spec import Lane
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.chaos.crash_points_process import Ending, Part, forked
from tests.chaos.harness.scene import frozen
from tests.chaos.processes import Ragtide
from tests.failures.site import Message, Sections, Site, of
from tests.infra import telemetry
from tests.infra.forked import Forked
from tests.infra.fresh_database import fresh_database
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import make_topics, read, send, trace

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.chaos, pytest.mark.timeout(240)]

COUNT = 1000
NOTE = "a" * 4000  # all of them are several times as large as what a worker may hold: the rest waits at the broker
LONGER_THAN_A_SESSION_S = 8
LABELS = "rag.labels"
_BEFORE, _WITHIN = "sink looked for, no client of Kafka begun", "consumer begun, no group joined"
TOLD_TO_END = "told to end"
# Which process goes on from where, once no broker is there.
IN_A_START: Mapping[str, tuple[Part, Lane, str]] = {
    "fast": ("worker", "fast", _BEFORE),
    "model": ("worker", "model", _BEFORE),
    "judge": ("worker", "judge", _WITHIN),
    "jobs": ("jobs", "fast", "topic of labels found, no client begun"),
    TOLD_TO_END: ("worker", "fast", _BEFORE),
}
SMALL: Sections = {
    "kafka": {"request_timeout_s": 7.0},
    "worker": {
        "in_flight_bytes": 1 << 20,
        "slice_records": 20,
        "block_rows": 50,
        "block_wait_ms": 20,
        "heartbeat_s": 0.5,
    },
    "evaluators": {"enabled": ["inputs"]},
}


@dataclass
class Scene:
    """One worker on a broker of its own; a test's traces begin with its name."""

    node: KafkaNode
    site: Site
    database: Database
    worker: Ragtide
    sent: int = 0

    def send(self, name: str) -> None:
        self.site.produce(
            [Message(trace(f"{name}-{n}", attributes={"note": NOTE}), f"{n}".encode()) for n in range(COUNT)]
        )
        self.sent += COUNT

    def stored(self, name: str) -> tuple[int, int]:
        """How many there are, and how many different ones."""
        (row,) = self.database.rows(
            "SELECT count() AS n, uniqExact(trace_id) AS ids FROM traces FINAL "
            "WHERE startsWith(trace_id, {name:String})",
            {"name": name},
        )
        return row["n"], row["ids"]

    def suffers(self, name: str, fault: AbstractContextManager[None]) -> None:
        """In the midst of `name`'s traces, which are all stored and committed afterwards, by the same process."""
        self.send(name)
        self.site.until(lambda: self.stored(name)[1] > 0, "the first traces stored")
        with fault:
            time.sleep(LONGER_THAN_A_SESSION_S)
            self.site.until(lambda: "no broker answers" in self.worker.asked("/ready"), "said by /ready")
            assert self.worker.asked("/live") == "ok\n"
            assert self.worker.process.poll() is None, self.site.logs()
            assert self.stored(name)[1] < COUNT, "too late to prove anything"
        self.site.until(lambda: self.site.committed() == self.sent, "every offset committed", 120)
        assert self.stored(name) == (COUNT, COUNT)
        self.site.until(lambda: self.worker.asked("/ready") == "ok\n", "said by /ready that the broker is back")


@pytest.fixture(scope="module")
def scene(clickhouse_server: EmbeddedClickHouse, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("broker-faults")
    with KafkaNode(folder / "kafka") as node, fresh_database(clickhouse_server) as database:
        site = of(folder, node, database, SMALL)
        with site.up():
            yield Scene(node, site, database, site.worker())


@dataclass
class Starting:
    """Processes by lane, or as jobs, which stand still in their start."""

    site: Site
    processes: dict[str, Forked]

    def stand_still(self) -> bool:
        found = {psutil.Process(process.pid).status() for process in self.processes.values()}
        return found == {psutil.STATUS_STOPPED}

    def go_on(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)

    def ready(self) -> dict[str, str]:
        """What each says of itself."""
        return {name: telemetry.asked(process.log.read_text(), "/ready") for name, process in self.processes.items()}

    def all_wait_for_a_broker(self) -> bool:
        return all("no broker answers" in said for said in self.ready().values())

    def none_waits(self) -> bool:
        return set(self.ready().values()) == {"ok\n"}


@contextmanager
def _starting(site: Site) -> Iterator[Starting]:
    """Each up to its crash point."""
    processes = {}
    try:
        for name, (part, lane, point) in IN_A_START.items():
            log = site.directory / f"starting-{name}.log"
            processes[name] = forked(part, site.config, log, Ending(point, signal.SIGSTOP), lane)
        found = Starting(site, processes)
        site.until(found.stand_still, "processes that stand still in their start")
        yield found
    finally:
        for process in processes.values():
            process.kill()


def test_a_stalled_broker_is_waited_for(scene: Scene) -> None:
    scene.suffers("stalled", frozen(scene.node.pid))


def test_a_broker_that_was_killed_has_its_log_and_the_rest_of_it_is_read(scene: Scene) -> None:
    scene.suffers("killed", _killed(scene.node))


def test_a_broker_that_goes_within_a_start_is_waited_for(scene: Scene) -> None:
    """After it was looked for: before a client has begun, or before a group is joined. Who is told to end, ends."""
    site, node = scene.site, scene.node
    make_topics(node, {LABELS: 1})
    with _starting(site) as starting:
        scene.send("start")
        site.until(lambda: scene.stored("start")[1] > 0, "the first traces stored")
        with _killed(node):
            scene.worker.process.terminate()  # with work that no broker takes the commit of
            starting.go_on()
            site.until(starting.all_wait_for_a_broker, "said by each /ready")
            assert [starting.processes.pop(TOLD_TO_END).stop(), scene.worker.stop()] == [0, 0], site.logs()
            assert scene.stored("start")[1] < COUNT, "too late to prove anything"
        site.produce([Message(b"{", b"broken")])
        send(node, LABELS, [(b"of none", b'{"trace_id": "of none", "expected": ["yes"]}'), (None, b"[")])
        for lane in get_args(Lane):
            site.until(
                partial(lambda lane: site.committed(lane) == scene.sent + 1, lane), f"all committed by {lane}", 120
            )
        site.until(lambda: scene.database.rows("SELECT trace_id FROM labels FINAL") != [], "the label stored")
        assert scene.stored("start") == (COUNT, COUNT)
        assert {letter.value for letter in read(node, site.dead_topic, 2)} == {b"{", b"["}
        site.until(starting.none_waits, "said by each /ready that nothing stands in the way")
        assert {process.stop() for process in starting.processes.values()} == {0}, site.logs()


def _committed(scene: Scene, lane: Lane) -> bool:
    """All that was sent, and the broken one."""
    return scene.site.committed(lane) == scene.sent + 1


@contextmanager
def _killed(node: KafkaNode) -> Iterator[None]:
    node.kill()
    try:
        yield
    finally:
        node.restart()
