"""`python -m tests.chaos.soak [--minutes 30]`: a steady 150 traces/s through the lane `fast`; does memory or lag grow?

Every `fast` evaluator, Apache Kafka and ClickHouse on this machine. Prints a line a minute, then the slope of resident
memory over what comes after the first fifth, with its standard error, and the lag. Ends with 1 where memory grew by
more than `GROWTH` of itself and three standard errors, or where lag in the last fifth is more than `LAG_S` of input.
What takes a process some minutes to get warm is under that share, and what leaks is above it in half an hour.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
from aiokafka import AIOKafkaProducer

from sinks.clickhouse.database import Database
from sinks.clickhouse.embedded import EmbeddedClickHouse
from sinks.clickhouse.migrate import migrate
from sinks.settings import RetentionSettings
from tests.failures.site import Site, of
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import trace

RATE = 150
GROWTH = 0.05
LAG_S = 10
_EVERY_S = 2.0
_WORDS = "the parcel left the house yesterday and will arrive tomorrow "
_CONTEXTS = [{"id": f"chunk-{number}", "text": _WORDS * 5} for number in range(3)]


class Sample(NamedTuple):
    """The worker at a time in seconds since the beginning."""

    at_s: float
    rss_mb: float
    lag: float


class Slope(NamedTuple):
    """Growth per hour and its standard error."""

    per_hour: float
    error: float


def slope(samples: Sequence[Sample]) -> Slope:
    """Of resident memory, by least squares."""
    hours = np.array([sample.at_s for sample in samples]) / 3600
    memory = np.array([sample.rss_mb for sample in samples])
    (per_hour, _), covariance = np.polyfit(hours, memory, 1, cov=True)
    return Slope(float(per_hour), float(np.sqrt(covariance[0, 0])))


def grows(samples: Sequence[Sample]) -> bool:
    """Whether that is more than noise, and more than a little."""
    found, hours = slope(samples), (samples[-1].at_s - samples[0].at_s) / 3600
    return (found.per_hour - 3 * found.error) * hours > GROWTH * samples[0].rss_mb


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description="Memory and lag over time.")
    parser.add_argument("--minutes", type=float, default=30.0)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with KafkaNode(folder / "kafka") as kafka, EmbeddedClickHouse(folder / "clickhouse") as server:
            database = Database(server.settings)
            migrate(database, RetentionSettings())
            with of(folder, kafka, database).up() as site:
                samples = asyncio.run(_soak(site, minutes * 60))
            database.close()
    return _judged(samples)


async def _soak(site: Site, seconds: float) -> list[Sample]:
    worker = site.worker()
    await asyncio.to_thread(site.until, lambda: "at work in group" in site.logs(), "the worker at work")
    process, samples, began = psutil.Process(worker.process.pid), list[Sample](), time.monotonic()
    sending = asyncio.create_task(_send(site, seconds))
    while not sending.done():
        await asyncio.sleep(_EVERY_S)
        lag = await asyncio.to_thread(worker.metric, "ragwatch_lag_records")
        samples.append(Sample(time.monotonic() - began, process.memory_info().rss / 1e6, lag))
        if len(samples) % round(60 / _EVERY_S) == 0:
            _say(f"{samples[-1].at_s / 60:5.1f} min  {samples[-1].rss_mb:6.1f} MB  lag {lag:5.0f} records")
    await sending
    await asyncio.to_thread(worker.stop)
    return samples


async def _send(site: Site, seconds: float) -> None:
    """`RATE` traces a second; what one second could not send, the next does."""
    async with AIOKafkaProducer(bootstrap_servers=site.broker.bootstrap) as producer:
        began, sent = time.monotonic(), 0
        while (passed_s := time.monotonic() - began) < seconds:
            for number in range(sent, int(passed_s * RATE)):
                await producer.send(site.topic, _message(number), key=b"%d" % number)
                sent = number + 1
            await asyncio.sleep(0.05)


def _message(number: int) -> bytes:
    return trace(
        f"trace-{number}",
        time=datetime.now(UTC).isoformat(),
        app=f"app-{number % 3}",
        question=f"where is parcel {number} that was ordered last week",
        answer=_WORDS * (1 + number % 5),
        contexts=_CONTEXTS,
        latency={"total_s": number % 80 / 8},
    )


def _judged(samples: Sequence[Sample]) -> int:
    settled = samples[len(samples) // 5 :]
    last = settled[-max(1, len(samples) // 5) :]
    found, lag = slope(settled), float(np.median([sample.lag for sample in last]))
    _say(
        f"memory {settled[0].rss_mb:.1f} to {settled[-1].rss_mb:.1f} MB: {found.per_hour:+.1f} ± {found.error:.1f} MB/h"
    )
    _say(f"lag: median of the last fifth {lag:.0f} records, {lag / RATE:.2f} s of input")
    bad = grows(settled), lag > LAG_S * RATE
    _say("memory grows" if bad[0] else f"memory grows by less than {GROWTH:.0%}")
    _say("lag is out of bounds" if bad[1] else "lag is bounded")
    return int(any(bad))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
