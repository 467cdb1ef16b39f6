"""How much of plain aiokafka's rate is left with Faust, our driver, the pipeline and acknowledged commits.

`python -m benchmarks.ingest [--records 200000]`: Apache Kafka on loopback, six partitions, records of 1 KB and 4 KB.
Rates are records a second of wall time; ratios are between loops of the same run, one after the other. The goals are
for like against like: nothing decoded on either side, and decoded on both. What all of the lane's work leaves of a loop
that decodes nothing is printed as well.
"""

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from ragtide.evaluators.outcome import NotApplicable, Outcome
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Lane, Metric, NoParams, Shared, evaluator
from ragtide.sinks.rows import Block
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.records import Record
from ragtide.stream.pipeline import Pipeline, SliceResult
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sections import (
    FETCHES_IN_FLIGHT,
    IngestSettings,
    KafkaSettings,
    TelemetrySettings,
    WorkerSettings,
)
from ragtide.stream.worker.lane import run_lane
from ragtide.stream.worker.process import collect_garbage_seldom
from tests.infra.kafka_node import KafkaNode

PARTITIONS = 6
CHUNKS = 4
GOAL = 0.5  # of the plain loop's rate, without decoding and with it
WORDS = "the quick brown fox jumps over the lazy dog and writes a line of a manual "


@dataclass(frozen=True)
class Question:
    question: str | None


@evaluator(
    "noop", version=1, domain="generation", method="rule", inputs=Question, metrics=[Metric("nothing", primary=True)]
)
def noop(rows: Sequence[Question], shared: Shared, params: NoParams) -> list[Outcome]:
    """Has nothing to say."""
    return [NotApplicable("noop")] * len(rows)


def record_of(number: int, size: int) -> bytes:
    """A canonical trace of `size` bytes: question, answer, four chunks, model, latency, tokens."""
    whole = {
        "trace_id": f"{number:032x}",
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "app": "bench",
        "question": WORDS[:60],
        "answer": "",
        "contexts": [{"id": f"c{n}", "text": "", "score": 0.5, "rank": n} for n in range(CHUNKS)],
        "model": {"served": "m-1", "requested": "m"},
        "latency": {"total_s": 0.8},
        "tokens": {"input": 100, "output": 50},
    }
    each, rest = divmod(size - len(json.dumps(whole)), 1 + CHUNKS)
    text = WORDS * (each // len(WORDS) + 2)
    return json.dumps(
        whole
        | {
            "answer": text[: each + rest],
            "contexts": [{"id": f"c{n}", "text": text[:each], "score": 0.5, "rank": n} for n in range(CHUNKS)],
        }
    ).encode()


async def fill(bootstrap: str, topic: str, count: int, size: int) -> None:
    """Produce `count` records of `size` bytes."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, PARTITIONS, 1), NewTopic(f"{topic}.dead", 1, 1)])
    await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=20, max_batch_size=128 << 10)
    await producer.start()
    for number in range(count):
        await producer.send(topic, record_of(number, size), partition=number % PARTITIONS)
    await producer.flush()
    await producer.stop()


@dataclass
class Span:
    """From the first record to the last: records a second, and the process's CPU time a record."""

    count: int
    began: float = 0.0
    began_cpu: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0

    def begin(self) -> None:
        if not self.began:
            self.began, self.began_cpu = time.perf_counter(), time.process_time()

    def end(self) -> None:
        self.seconds, self.cpu = time.perf_counter() - self.began, time.process_time() - self.began_cpu

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    @property
    def cpu_us(self) -> float:
        return self.cpu / self.count * 1e6


async def plain(bootstrap: str, topic: str, count: int, *, decoding: bool) -> Span:
    """An aiokafka loop that commits nothing."""
    limits, adjustments = Limits.of(IngestSettings(), RetentionSettings(), timely=True), Adjustments()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=f"plain-{topic}-{decoding}-{time.monotonic_ns()}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=WorkerSettings().in_flight_bytes // FETCHES_IN_FLIGHT,  # as the lane fetches
    )
    await consumer.start()
    span, seen = Span(count), 0
    while seen < count:
        for records in (await consumer.getmany(timeout_ms=500, max_records=10_000)).values():
            span.begin()
            seen += len(records)
            if decoding:
                for record in records:
                    decode_trace(record, limits, adjustments=adjustments)
    span.end()
    await consumer.stop()
    return span


class Watched:
    """A pipeline that says when its first and its last record went through."""

    def __init__(self, inner: Callable[[Sequence[Record]], SliceResult], count: int, stop: asyncio.Event) -> None:
        self.span = Span(count)
        self._inner = inner
        self._left = count
        self._stop = stop
        self._loop = asyncio.get_running_loop()

    def process(self, records: Sequence[Record]) -> SliceResult:
        self.span.begin()
        processed = self._inner(records)
        self._left -= len(records)
        if self._left <= 0:
            self.span.end()
            self._loop.call_soon_threadsafe(self._stop.set)
        return processed


def untouched(records: Sequence[Record]) -> SliceResult:
    """Nothing is done with them."""
    return SliceResult(decoded=len(records))


class Nowhere:
    """A sink that takes everything and keeps nothing."""

    def write(self, block: Block) -> None:
        """Nothing."""

    def check(self) -> str:
        """Its name."""
        return "nowhere"

    def close(self) -> None:
        """Nothing."""


async def through_faust(bootstrap: str, topic: str, count: int, lane: Lane | None) -> Span:
    """A lane with the no-op evaluator, acknowledging and committing; None: one that does not even decode."""
    kafka = KafkaSettings(
        bootstrap_servers=bootstrap,
        topics=(topic,),
        dead_letter_topic=f"{topic}.dead",
        group_prefix=f"{lane}-{time.monotonic_ns()}",
    )
    settings = Settings(kafka=kafka, telemetry=TelemetrySettings(log_level="WARNING"))
    stop = asyncio.Event()
    plan = [PreparedEvaluator(noop, NoParams(), "noop", ())]
    process = Pipeline(plan, Resources(), settings, lane=lane).process if lane else untouched
    watched = Watched(process, count, stop)
    await run_lane(settings, lane or "model", watched, Nowhere(), stop, port=0)
    return watched.span


async def measure(bootstrap: str, count: int, size: int, rounds: int) -> float:
    """The lower of the two ratios that have a goal."""
    topic = f"ingest-{size}"
    await fill(bootstrap, topic, count, size)
    spans: dict[str, list[Span]] = {}
    for _ in range(rounds):
        for name, span in (
            ("getmany", await plain(bootstrap, topic, count, decoding=False)),
            ("lane", await through_faust(bootstrap, topic, count, None)),
            ("getmany, decoding", await plain(bootstrap, topic, count, decoding=True)),
            ("lane, decoding, no-op evaluator", await through_faust(bootstrap, topic, count, "model")),
            ("lane fast: and rows of traces", await through_faust(bootstrap, topic, count, "fast")),
        ):
            spans.setdefault(name, []).append(span)
    rates = {name: max(span.rate for span in measured) for name, measured in spans.items()}
    cpus = {name: min(span.cpu_us for span in measured) for name, measured in spans.items()}
    against = {name: "getmany, decoding" if "," in name or ":" in name else "getmany" for name in rates}
    ratios = {name: rate / rates[against[name]] for name, rate in rates.items()}
    print(f"\n{count} records of {size} bytes, best of {rounds}")
    for name, rate in rates.items():
        cpu = cpus[against[name]] / cpus[name]
        print(f"  {name:32}{rate:9.0f}/s {cpus[name]:6.1f} µs CPU   {ratios[name]:4.2f} ({cpu:4.2f} by CPU)", end="")
        print(f" of {against[name]}")
    whole = "lane, decoding, no-op evaluator"
    strict, by_cpu = rates[whole] / rates["getmany"], cpus["getmany"] / cpus[whole]
    print(f"  {whole}: {strict:.2f} ({by_cpu:.2f} by CPU) of getmany, which does not even decode")
    return min(ratios["lane"], ratios["lane, decoding, no-op evaluator"])


def main() -> int:
    """0 where the lane kept at least `GOAL` of both loops' rates, at both sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # leaders are elected while the first records come
    collect_garbage_seldom()  # as the worker does, and for the plain loops alike
    with tempfile.TemporaryDirectory() as directory, KafkaNode(Path(directory)) as node:
        kept = [asyncio.run(measure(node.bootstrap, chosen.records, size, chosen.rounds)) for size in (1024, 4096)]
    print(f"goal {GOAL}: {'reached' if min(kept) >= GOAL else 'missed'}")
    return 0 if min(kept) >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
