"""How long after a trace was sent its last score can be read, at a steady rate, and how many a worker takes at most.

`python -m benchmarks.latency [--seconds 15]`: Apache Kafka, the embedded ClickHouse and one `ragtide worker --lane
fast` on this machine, traces of prose of 5 KB with references. A trace is there when a query that asks ten times a
second counts its row of `operations`, which is stored in one insert with those of all other evaluators. Beside the
95th percentile stands what a row waits for its block at most, which nothing can be much faster than. The highest rate
is that of a backlog sent at once, from the first row to the last; beside it stands what a core of its own would allow,
by the worker's CPU, since brokers, database, producer and worker share this machine's.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil
from aiokafka import AIOKafkaProducer

from benchmarks.prose_traces import prose_traces
from ragtide.evaluators import registry
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.local.topics import create_topics
from ragtide.stream.settings.loader import Settings
from tests.infra.fresh_database import reached
from tests.infra.kafka_node import KafkaNode

LIMIT_S = 2.0
EVERY_S = 0.1
AWAY_S = 180.0
DISTINCT = 3_000
WARM = 50


@dataclass(frozen=True)
class Load:
    """Traces of one app to a worker with these evaluators: `rate` a second, then `backlog` at once."""

    app: str
    evaluators: Sequence[str]
    rate: int
    backlog: int


@dataclass
class Measured:
    """When each trace was sent, and how many rows each look counted; seconds."""

    sent: list[float]
    looks: list[tuple[float, int]]

    def latencies(self) -> list[float]:
        """In ascending order; one partition, so that rows come in the order of their traces."""
        counts = [count for _, count in self.looks]
        return sorted(self.looks[bisect_right(counts, n)][0] - at for n, at in enumerate(self.sent))

    def rate(self) -> float:
        """Rows a second between the first look that counted any and the first that counted all."""
        (began, some), (ended, every) = (
            next(look for look in self.looks if look[1] >= wanted) for wanted in (1, len(self.sent))
        )
        return (every - some) / (ended - began)


class Bench:
    """A broker, a database, and traces that go from one to the other."""

    def __init__(self, kafka: KafkaNode, database: Database, folder: Path) -> None:
        self._kafka = kafka
        self._database = database
        self._folder = folder
        self._traces = prose_traces(DISTINCT)
        self._ids = itertools.count()

    @contextmanager
    def worker(self, load: Load) -> Iterator[psutil.Process]:
        """At work on the app's topic."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
        own = {
            "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": self._kafka.bootstrap,
            "RAGTIDE_KAFKA__TOPICS": load.app,
            "RAGTIDE_KAFKA__DEAD_LETTER_TOPIC": f"{load.app}.dead",
            "RAGTIDE_KAFKA__GROUP_PREFIX": load.app,
            "RAGTIDE_EVALUATORS__ENABLED": ",".join(load.evaluators),
            "RAGTIDE_TELEMETRY__PORT": "0",
        }
        asyncio.run(create_topics(self._kafka.bootstrap, {load.app: 1, f"{load.app}.dead": 1}))
        command = [sys.executable, "-m", "ragtide.stream", "worker", "--lane", "fast"]
        with (self._folder / f"{load.app}.log").open("wb") as log:
            environ = kept | reached(self._database) | own
            process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
        try:
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()

    async def measured(self, load: Load, count: int, rate: float | None) -> Measured:
        """So many traces, `rate` a second or all at once, until all of their rows are there."""
        before = self._rows(load.app)
        looks: list[tuple[float, int]] = []
        looking = asyncio.create_task(self._look(load.app, before, count, looks))
        sent = await self._send(load.app, count, rate)
        await looking
        return Measured(sent, looks)

    async def _send(self, app: str, count: int, rate: float | None) -> list[float]:
        producer = AIOKafkaProducer(bootstrap_servers=self._kafka.bootstrap, linger_ms=5)
        await producer.start()
        began, sent = time.perf_counter(), []
        for n in range(count):
            if rate is not None:
                await asyncio.sleep(max(0.0, began + n / rate - time.perf_counter()))
            sent.append(time.perf_counter())
            await producer.send(app, self._value(app), partition=0)
        await producer.stop()
        return sent

    def _value(self, app: str) -> bytes:
        number = next(self._ids)
        trace = self._traces[number % DISTINCT]
        return msgspec.json.encode(
            msgspec.structs.replace(trace, trace_id=f"{app}-{number}", app=app, time=datetime.now(UTC))
        )

    async def _look(self, app: str, before: int, count: int, looks: list[tuple[float, int]]) -> None:
        deadline = time.perf_counter() + AWAY_S
        while not looks or looks[-1][1] < count:
            there = await asyncio.to_thread(self._rows, app) - before
            looks.append((time.perf_counter(), there))
            if time.perf_counter() > deadline:
                raise SystemExit(f"{there} of {count} traces of {app} are there after {AWAY_S:.0f} s")
            await asyncio.sleep(EVERY_S)

    def _rows(self, app: str) -> int:
        sql = (
            "SELECT count() AS n FROM scores WHERE run_id = 'live' AND app = {app:String} AND evaluator = 'operations'"
        )
        return int(self._database.rows(sql, {"app": app})[0]["n"])


def measure(bench: Bench, load: Load, seconds: float) -> bool:
    """Whether 95 of 100 traces were there within the limit."""
    with bench.worker(load) as worker:
        asyncio.run(bench.measured(load, WARM, None))
        steady = asyncio.run(bench.measured(load, round(load.rate * seconds), load.rate)).latencies()
        before = worker.cpu_times()
        most = asyncio.run(bench.measured(load, load.backlog, None)).rate()
        after = worker.cpu_times()
    cpu_s = (after.user + after.system - before.user - before.system) / load.backlog
    half, late = steady[len(steady) // 2], steady[len(steady) * 95 // 100]
    waits_s = Settings().worker.block_wait_ms / 1000
    print(f"{load.app}: {len(load.evaluators)} evaluators, {load.rate} traces a second for {seconds:.0f} s")
    print(f"  sent to readable: median {half:.2f} s, 95 of 100 within {late:.2f} s, all within {steady[-1]:.2f} s")
    print(f"  {late / LIMIT_S:.2f} of the limit of {LIMIT_S:g} s; {late / waits_s:.1f} times a block's longest wait")
    print(f"  a backlog of {load.backlog}: {most:.0f} traces a second, {most / load.rate:.1f} times the steady rate")
    print(f"  {cpu_s * 1e3:.2f} ms of the worker's CPU a trace: {1 / cpu_s:.0f} a second on a core of its own")
    return late <= LIMIT_S


def main() -> int:
    """0 where both loads are readable within `LIMIT_S`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0)
    chosen = parser.parse_args()
    fast = [name for name, found in registry.load().items() if found.lane == "fast"]
    loads = [
        Load("every-fast", fast, 150, 4_000),
        Load("operations-and-inputs", ["operations", "inputs"], 1_000, 12_000),
    ]
    with (
        tempfile.TemporaryDirectory() as place,
        EmbeddedClickHouse(Path(place) / "clickhouse") as server,
        KafkaNode(Path(place) / "kafka") as kafka,
        contextlib.closing(Database(server.settings)) as database,
    ):
        migrate(database, RetentionSettings())
        bench = Bench(kafka, database, Path(place))
        within = [measure(bench, load, chosen.seconds) for load in loads]
    print(f"goals {'reached' if all(within) else 'missed'}")
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
