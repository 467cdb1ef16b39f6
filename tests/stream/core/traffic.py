"""Topics, traces and committed offsets on a real broker, and lanes as processes that a test can stop or kill."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from aiokafka import TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.errors import GroupLoadInProgressError, TopicAlreadyExistsError, for_code

from ragtide.evaluators.spec import Lane as LaneName
from tests.infra import telemetry
from tests.infra.forked import Forked
from tests.infra.kafka_clients import admin_of, consumer_of, patiently, producer_of
from tests.infra.settings_file import settings_file
from tests.stream.core import lane_process
from tests.stream.core.line_sink import rows_in

ROOT = Path(__file__).parents[3]
QUICK = {"session_timeout_s": 6.0, "heartbeat_s": 1.0, "rebalance_timeout_s": 8.0, "commit_interval_s": 0.2}


class Broker(Protocol):
    @property
    def bootstrap(self) -> str: ...


def trace(trace_id: str, **fields: Any) -> bytes:
    whole = {"trace_id": trace_id, "time": datetime.now(UTC).isoformat(), "app": "shop", "question": "why?", **fields}
    return json.dumps(whole).encode()


def make_topics(broker: Broker, topics: Mapping[str, int], configs: Mapping[str, str] | None = None) -> None:
    """They are there when this returns; those that were there stay as they are."""
    wanted = [NewTopic(name, count, 1, topic_configs=dict(configs or {})) for name, count in topics.items()]

    async def make() -> None:
        async with admin_of(broker.bootstrap) as admin:

            async def made() -> None:
                for name, code, *_ in (await admin.create_topics(wanted)).topic_errors:
                    if code and for_code(code) is not TopicAlreadyExistsError:
                        raise for_code(code)(f"topic {name} is not made")

            await patiently(made)

    asyncio.run(make())


def send(broker: Broker, topic: str, values: Sequence[tuple[bytes | None, bytes | None]], **options: Any) -> None:
    """Send (key, value) pairs, round robin over the partitions where the key is None."""

    async def produce() -> None:
        async with producer_of(broker.bootstrap, max_request_size=16 << 20, **options) as producer:
            for future in [await producer.send(topic, value, key=key) for key, value in values]:
                await future

    asyncio.run(produce())


def read(broker: Broker, topic: str, count: int, timeout_s: float = 20.0) -> list[Any]:
    """The first `count` records of a topic, or as many as came in time."""

    async def consume() -> list[Any]:
        options = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "max_partition_fetch_bytes": 16 << 20}
        found: list[Any] = []
        async with consumer_of(broker.bootstrap, topic, **options) as consumer:
            deadline = time.monotonic() + timeout_s
            while len(found) < count and time.monotonic() < deadline:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += records
        return found

    return asyncio.run(consume())


def committed(broker: Broker, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Of every partition, 0 where nothing was; waited for while brokers make, load or move what they know of groups."""
    wanted = [TopicPartition(topic, number) for number in range(partitions)]

    async def ask() -> dict[int, int]:
        async with admin_of(broker.bootstrap) as admin:

            async def told() -> dict[int, int]:
                offsets = await admin.list_consumer_group_offsets(group, partitions=wanted)
                if len(offsets) < len(wanted):  # aiokafka tells of no error then
                    raise GroupLoadInProgressError
                return {at.partition: max(0, found.offset) for at, found in offsets.items()}

            return await patiently(told)

    return asyncio.run(ask())


def eventually(what: Callable[[], bool], timeout_s: float, why: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {why()}"
        time.sleep(0.1)


@dataclass
class Lane:
    """A lane as a process. `rows` are those that its directory's sink stored, over all lanes that share it."""

    broker: Broker
    directory: Path
    topic: str
    kafka: Mapping[str, Any] = field(default_factory=dict)
    worker: Mapping[str, Any] = field(default_factory=dict)
    ingest: Mapping[str, Any] = field(default_factory=dict)
    lane: LaneName = "fast"
    nap_s: float = 0.0
    process: Forked | None = None

    @property
    def group(self) -> str:
        return f"{self.topic}-{self.lane}"

    @property
    def dead_topic(self) -> str:
        return f"{self.topic}.dead"

    def start(self) -> "Lane":
        settings = {
            "kafka": {
                "bootstrap_servers": self.broker.bootstrap,
                "topics": [self.topic],
                "dead_letter_topic": self.dead_topic,
                "group_prefix": self.topic,
                **QUICK,
                **self.kafka,
            },
            "worker": {"block_wait_ms": 50, "heartbeat_s": 0.5, **self.worker},
            "ingest": dict(self.ingest),
            "evaluators": {"enabled": ["inputs"]},
        }
        name = uuid.uuid4().hex[:8]
        file = self.directory / f"{name}.toml"
        file.write_text(settings_file(settings))
        log = self.directory / f"{name}.log"
        self.process = Forked(log, lane_process.run, file, self.directory, self.lane, self.nap_s)
        return self

    def is_at_work(self) -> bool:
        """By its own word: `logs` are those of every lane in its directory, in any order."""
        return self.process is not None and self.process.says("consumes as group")

    def logs(self) -> str:
        return "\n".join(path.read_text()[-4000:] for path in self.directory.glob("*.log"))

    def traces(self) -> list[str]:
        return [key for kind, key, _ in rows_in(self.directory) if kind == "trace"]

    def metric(self, name: str) -> float:
        """The sum of a metric's samples, from /metrics of this process."""
        return telemetry.metric(self.logs(), name)

    def asked(self, path: str) -> str:
        """What this process answers over HTTP, whatever the status; empty before it listens."""
        return telemetry.asked(self.logs(), path)

    def terminate(self, timeout_s: float = 30.0) -> int:
        assert self.process is not None
        return self.process.stop(timeout_s)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def __enter__(self) -> "Lane":
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
