"""One installation of ragtide on real parts: topics of its own, a database, workers and jobs as processes."""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import ClickHouseSettings
from tests.chaos.processes import RAGTIDE, Ragtide, wait_until
from tests.infra.kafka_clients import producer_of
from tests.infra.settings_file import settings_file
from tests.stream.core.traffic import QUICK, Broker, committed, make_topics

Sections = Mapping[str, Mapping[str, Any]]
Headers = Sequence[tuple[str, bytes]]


class Message(NamedTuple):
    """What a producer sends."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()


class Place(NamedTuple):
    """Where the broker put it."""

    partition: int
    offset: int


@dataclass
class Site:
    """`sections` go over settings that make everything quick; processes started here are killed at the end of `up`."""

    directory: Path
    broker: Broker
    clickhouse: ClickHouseSettings
    sections: Sections = field(default_factory=dict)
    partitions: int = 2
    topic: str = field(default_factory=lambda: f"rag.{uuid.uuid4().hex[:8]}")
    _started: list[Ragtide] = field(default_factory=list)

    @property
    def dead_topic(self) -> str:
        return f"{self.topic}.dead"

    @property
    def config(self) -> Path:
        return self.directory / "ragtide.toml"

    @contextmanager
    def up(self, largest_record: int = 8 << 20, largest_dead_letter: int = 8 << 20) -> Iterator["Site"]:
        """Topics made, settings written."""
        sizes = {self.topic: (self.partitions, largest_record), self.dead_topic: (1, largest_dead_letter)}
        for topic, (partitions, largest) in {**sizes, f"{self.topic}.jobs": (1, 1 << 20)}.items():
            make_topics(self.broker, {topic: partitions}, {"max.message.bytes": str(largest)})
        self.config.write_text(settings_file(self._settings()))
        try:
            yield self
        finally:
            for process in self._started:
                process.kill()

    def worker(self, lane: str = "fast", program: Sequence[str] = RAGTIDE) -> Ragtide:
        return self._start("worker", "--lane", lane, program=program)

    def jobs(self) -> Ragtide:
        return self._start("jobs")

    def produce(self, messages: Sequence[Message]) -> list[Place]:
        """Where each message went, in order."""

        async def send() -> list[Place]:
            async with producer_of(self.broker.bootstrap, max_request_size=16 << 20) as producer:
                sent = [
                    await producer.send(self.topic, message.value, key=message.key, headers=list(message.headers))
                    for message in messages
                ]
                return [Place(found.partition, found.offset) for found in await asyncio.gather(*sent)]

        return asyncio.run(send())

    def committed(self, lane: str = "fast") -> int:
        """Over all partitions; from 0 on every offset is a record here."""
        return sum(committed(self.broker, f"{self.topic}-{lane}", self.topic, self.partitions).values())

    def until(self, done: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
        """Wait for it, with a word of the logs where it does not come or a process ends by itself."""

        def looked() -> bool:
            crashed = [process.process.returncode for process in self._started if process.process.poll()]
            assert not crashed, f"ended with {crashed}"
            return done()

        try:
            wait_until(looked, timeout_s, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def logs(self) -> str:
        return "\n".join(path.read_text()[-3000:] for path in sorted(self.directory.glob("*.log")))

    def _start(self, *arguments: str, program: Sequence[str] = RAGTIDE) -> Ragtide:
        log = self.directory / f"{arguments[0]}-{len(self._started)}.log"
        started = Ragtide(*arguments, config=self.config, log=log, program=program)
        self._started.append(started)
        return started

    def _settings(self) -> dict[str, dict[str, Any]]:
        settings: dict[str, dict[str, Any]] = {
            "kafka": {
                "bootstrap_servers": self.broker.bootstrap,
                "topics": [self.topic],
                "dead_letter_topic": self.dead_topic,
                "jobs_topic": f"{self.topic}.jobs",
                "group_prefix": self.topic,
                **QUICK,
            },
            "worker": {"block_wait_ms": 50, "heartbeat_s": 0.5},
            "clickhouse": {
                "url": self.clickhouse.url,
                "user": self.clickhouse.user,
                "password": self.clickhouse.password.get_secret_value(),
                "database": self.clickhouse.database,
                "timeout_s": self.clickhouse.timeout_s,
            },
            "windows": {"out_of_orderness_s": 2, "heartbeat_timeout_s": 5, "idle_after_s": 1},
            "jobs": {"every_s": 2, "reconcile_every_s": 2, "checks_every_s": 10},
            "telemetry": {"port": 0, "jobs_port": 0},
        }
        for section, values in self.sections.items():
            settings.setdefault(section, {}).update(values)
        return settings


def of(directory: Path, broker: Broker, database: Database, sections: Sections | None = None) -> Site:
    """A site on a migrated database."""
    return Site(directory, broker, database.settings, sections or {})
