"""A broker that answers nobody for longer than a session lasts, and one that is killed and has its log afterwards."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import pytest

from sinks.clickhouse.database import Database
from sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.chaos.harness.scene import frozen
from tests.chaos.processes import Ragwatch
from tests.failures.site import Message, Sections, Site, of
from tests.infra.fresh_database import fresh_database
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import trace

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.chaos, pytest.mark.timeout(240)]

COUNT = 4000
LONGER_THAN_A_SESSION_S = 8
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
    worker: Ragwatch
    sent: int = 0

    def send(self, name: str) -> None:
        self.site.produce([Message(trace(f"{name}-{n}"), f"{n}".encode()) for n in range(COUNT)])
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


def test_a_stalled_broker_is_waited_for(scene: Scene) -> None:
    scene.suffers("stalled", frozen(scene.node.pid))


def test_a_broker_that_was_killed_has_its_log_and_the_rest_of_it_is_read(scene: Scene) -> None:
    scene.suffers("killed", _killed(scene.node))


@contextmanager
def _killed(node: KafkaNode) -> Iterator[None]:
    node.kill()
    try:
        yield
    finally:
        node.restart()
