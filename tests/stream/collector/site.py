"""An installation that reads what Collectors write: topics, and stage `assemble` and both lanes as processes."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiokafka import TopicPartition
from click.testing import CliRunner

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from ragtide.stream.settings.loader import load
from ragtide.stream.worker.process import Part, run_lane_process
from tests.infra.forked import Forked
from tests.infra.kafka_clients import consumer_of
from tests.infra.settings_file import settings_file
from tests.stream.core.traffic import QUICK, Broker, read

EVALUATORS = ("operations", "inputs", "rouge", "groundedness", "answer_relevancy_sentence", "context_relevancy_soft")
_PARTITIONS = 3


def run(file: Path, part: Part) -> int:
    """The real process of the worker, until SIGTERM; its exit status."""
    return run_lane_process(load(file, {}).settings, part, 0)


def stored(broker: Broker, topic: str) -> list[Any]:
    """Every record that the topic has now."""

    async def count() -> int:
        async with consumer_of(broker.bootstrap, topic) as consumer:
            partitions = [TopicPartition(topic, number) for number in range(_PARTITIONS)]
            ends: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
            return sum(ends.values())

    return read(broker, topic, asyncio.run(count()))


@dataclass
class Site:
    """Each name is a pair of topics that a Collector writes: spans and log records."""

    broker: Broker
    directory: Path
    names: Sequence[str]
    database: Database | None = None
    otel: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")
    _processes: list[Forked] = field(default_factory=list)

    def spans_topic(self, name: str) -> str:
        return f"{self.prefix}.{name}.spans"

    def logs_topic(self, name: str) -> str:
        return f"{self.prefix}.{name}.logs"

    @property
    def traces_topic(self) -> str:
        return f"{self.prefix}.traces"

    def create_topics(self) -> None:
        """As docs/opentelemetry.md says."""
        self._file.write_text(settings_file(self._settings()))
        arguments = ["topics", "create", "--spans", "--partitions", str(_PARTITIONS), "--config", str(self._file)]
        done = CliRunner().invoke(main, arguments, env={"RAGTIDE_CONFIG": None})
        assert done.exit_code == 0, done.output

    def start(self, part: Part) -> Forked:
        process = Forked(self.directory / f"{part}-{len(self._processes)}.log", run, self._file, part)
        self._processes.append(process)
        return process

    def logs(self) -> str:
        return "\n".join(path.read_text()[-4000:] for path in self.directory.glob("*.log"))

    @property
    def _file(self) -> Path:
        return self.directory / "ragtide.toml"

    def _settings(self) -> Mapping[str, Mapping[str, Any]]:
        kafka = {
            "bootstrap_servers": self.broker.bootstrap,
            "topics": [self.traces_topic],
            "spans_topic": f"{self.prefix}.spans",
            "dead_letter_topic": f"{self.prefix}.dead",
            "jobs_topic": f"{self.prefix}.jobs",
            "group_prefix": self.prefix,
        }
        otel = {
            "topics": [self.spans_topic(name) for name in self.names],
            "log_topics": [self.logs_topic(name) for name in self.names],
            "traces_topic": self.traces_topic,
            "quiet_s": 3.0,
            **self.otel,
        }
        settings: dict[str, Mapping[str, Any]] = {
            "kafka": {**kafka, **QUICK},
            "otel": otel,
            "worker": {"block_wait_ms": 50},
            "evaluators": {"enabled": list(EVALUATORS)},
            "evaluators.encoder": {"backend": "onnx"},
        }
        if self.database is not None:
            reached = self.database.settings
            password = reached.password.get_secret_value()
            address = {"url": reached.url, "user": reached.user, "password": password, "database": reached.database}
            settings["clickhouse"] = address
        return settings

    def __enter__(self) -> Self:
        self.create_topics()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._processes:
            process.kill()
