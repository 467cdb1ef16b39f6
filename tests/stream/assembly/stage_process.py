"""Stage `assemble` as a process that a test can kill, and topics of its own on a real broker."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from ragtide.stream.settings.loader import load
from ragtide.stream.worker.process import run_lane_process
from tests.infra import telemetry
from tests.infra.forked import Forked
from tests.infra.settings_file import settings_file
from tests.stream.core.traffic import QUICK, Broker, make_topics

PARTITIONS = 3


def run(file: Path) -> int:
    """The real process of the worker, until SIGTERM; its exit status."""
    return run_lane_process(load(file, {}).settings, "assemble", 0)


@dataclass
class AssembleProcess:
    broker: Broker
    directory: Path
    prefix: str
    otel: Mapping[str, Any] = field(default_factory=dict)
    worker: Mapping[str, Any] = field(default_factory=dict)
    process: Forked | None = None

    @property
    def group(self) -> str:
        return f"{self.prefix}-assemble"

    def start(self) -> "AssembleProcess":
        settings = {
            "kafka": {
                "bootstrap_servers": self.broker.bootstrap,
                "topics": [f"{self.prefix}.traces"],
                "spans_topic": f"{self.prefix}.spans",
                "dead_letter_topic": f"{self.prefix}.dead",
                "group_prefix": self.prefix,
                **QUICK,
            },
            "otel": {
                "topics": [f"{self.prefix}.otlp"],
                "traces_topic": f"{self.prefix}.traces",
                "quiet_s": 2.0,
                "late_s": 20.0,
                **self.otel,
            },
            "worker": dict(self.worker),
        }
        name = uuid.uuid4().hex[:8]
        file = self.directory / f"{name}.toml"
        file.write_text(settings_file(settings))
        self.process = Forked(self.directory / f"{name}.log", run, file)
        return self

    def logs(self) -> str:
        return "\n".join(path.read_text()[-4000:] for path in self.directory.glob("*.log"))

    def metric(self, name: str) -> float:
        return telemetry.metric(self.logs(), name)

    def terminate(self, timeout_s: float = 30.0) -> int:
        assert self.process is not None
        return self.process.stop(timeout_s)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def __enter__(self) -> "AssembleProcess":
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()


def topics(broker: Broker) -> str:
    """The prefix of new topics of spans, spans by trace, traces and dead letters."""
    prefix = f"t{uuid.uuid4().hex[:8]}"
    make_topics(broker, {f"{prefix}.otlp": PARTITIONS, f"{prefix}.logs": 1, f"{prefix}.dead": 1})
    make_topics(broker, {f"{prefix}.traces": 2})
    make_topics(broker, {f"{prefix}.spans": PARTITIONS}, {"message.timestamp.type": "LogAppendTime"})
    return prefix
