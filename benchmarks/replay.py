"""How much of a plain aiokafka loop's rate a replay keeps, what its stages cost, and what a second process adds.

`python -m benchmarks.replay [--records 40000]`: Apache Kafka on loopback, six partitions, records of 4 KB, a sink that
keeps nothing. Each loop is a process of its own, from the first record to the last; the rival decodes what it reads
and does nothing else. A replay makes rows of traces and texts besides. Two processes take three partitions each. The
records share their texts, so that `inputs` tells their languages once; of other traces that is most of what it costs.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from benchmarks.ingest import PARTITIONS, Nowhere, Span, fill, noop, plain, record_of
from ragtide.evaluators import registry
from ragtide.evaluators.plan import PreparedEvaluator, prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import Lane, NoParams
from ragtide.stream.ingest.records import Record, StoredRecord
from ragtide.stream.pipeline import Pipeline, SliceResult
from ragtide.stream.replay.loop import replay
from ragtide.stream.replay.offsets import OffsetRange, OffsetSource
from ragtide.stream.replay.runs import RunRow, Runs
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.worker.process import collect_garbage_seldom
from tests.infra.kafka_node import KafkaNode

SIZE = 4096
REAL = ("operations", "inputs")
GOAL = 0.4  # of the plain loop's rate, by CPU: rows are made besides
NOOP_GOAL = 20_000  # records a second decoded and given to an evaluator, on two cores


class Task(NamedTuple):
    """What one process does: of every partition in `partitions` the first `each` records."""

    bootstrap: str
    topic: str
    partitions: Sequence[int]
    each: int
    evaluators: Sequence[str]  # none: the one that does nothing

    @property
    def records(self) -> int:
        return self.each * len(self.partitions)


class Forgotten(Runs):
    """Keeps no runs."""

    def __init__(self) -> None:
        pass

    def store(self, row: RunRow) -> None:
        """Nothing."""


class Timed(Pipeline):
    """Says when its first record came and how many did."""

    def timed(self, span: Span) -> "Timed":
        self.span = span
        return self

    def process(self, records: Sequence[Record]) -> SliceResult:
        self.span.begin()
        return super().process(records)


def pipeline(evaluators: Sequence[str], lane: Lane | None) -> Timed:
    """With these evaluators, or the one that does nothing."""
    plan: Sequence[PreparedEvaluator] = [PreparedEvaluator(noop, NoParams(), "noop", ())]
    if evaluators:
        plan = prepare(registry.load(), EvaluatorSettings(enabled=tuple(evaluators)), "fast", None).prepared
    return Timed(plan, Resources(), Settings(), lane=lane, run_id="bench", timely=False)


def replayed(task: Task) -> Span:
    """By `ragtide replay`'s own loop, over ranges of offsets."""
    quiet()
    span = Span(task.records)
    kafka = KafkaSettings(bootstrap_servers=task.bootstrap)
    ranges = [OffsetRange(task.topic, number, 0, task.each) for number in task.partitions]
    source = OffsetSource(kafka, ranges, batch_records=Settings().worker.batch_records)
    run = RunRow("bench", "", [], {}, "", "started", "{}", 0, 0, 1, datetime.now(UTC))
    timed, rows = pipeline(task.evaluators, None).timed(span), Settings().worker.block_rows
    asyncio.run(replay(source, timed, Nowhere(), Forgotten(), run, block_rows=rows))
    span.end()
    return span


def looped(task: Task) -> Span:
    """By the plain loop."""
    quiet()
    return asyncio.run(plain(task.bootstrap, task.topic, task.records, decoding=True))


def in_memory(evaluators: Sequence[str], count: int) -> Span:
    """Decoded and evaluated in this process, nothing fetched and no rows of traces: in the slices of a replay."""
    quiet()
    at_once = Settings().worker.batch_records
    records = [StoredRecord("t", 0, n, time.time_ns() // 1_000_000, None, record_of(n, SIZE)) for n in range(count)]
    span = Span(count)
    process = pipeline(evaluators, "model").timed(span).process
    for first in range(0, count, at_once):
        process(records[first : first + at_once])
    span.end()
    return span


def quiet() -> None:
    """As the worker does, and for every loop alike."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    collect_garbage_seldom()


def best(spans: Sequence[Span]) -> Span:
    return min(spans, key=lambda span: span.seconds)


def told(name: str, span: Span, rival: Span) -> float:
    """The share of the rival's rate by CPU, which other processes move least; printed with the one by wall time."""
    by_cpu = rival.cpu_us / span.cpu_us
    print(
        f"  {name:34}{span.rate:9.0f}/s {span.cpu_us:7.1f} µs CPU {span.rate / rival.rate:6.2f} ({by_cpu:.2f} by CPU)"
    )
    return by_cpu


def measure(pool: ProcessPoolExecutor, bootstrap: str, records: int, rounds: int) -> bool:
    """Whether both goals are reached."""
    topic, each = "replay", records // PARTITIONS
    asyncio.run(fill(bootstrap, topic, each * PARTITIONS, SIZE))
    whole = Task(bootstrap, topic, range(PARTITIONS), each, ())
    real = whole._replace(evaluators=REAL)
    halves = [real._replace(partitions=range(first, PARTITIONS, 2)) for first in (0, 1)]
    found: dict[str, list[Span]] = {}
    both: list[float] = []
    for _ in range(rounds):
        for name, span in (
            ("getmany, decoding", pool.submit(looped, whole).result()),
            ("replay, no-op evaluator", pool.submit(replayed, whole).result()),
            ("replay, operations and inputs", pool.submit(replayed, real).result()),
            ("in memory: decoding and no-op", pool.submit(in_memory, (), whole.records).result()),
            ("in memory: operations and inputs", pool.submit(in_memory, REAL, whole.records).result()),
        ):
            found.setdefault(name, []).append(span)
        spans = list(pool.map(replayed, halves))
        both.append(sum(span.count for span in spans) / max(span.seconds for span in spans))
        found.setdefault("one of two processes", []).append(max(spans, key=lambda span: span.seconds))
    fastest = {name: best(spans) for name, spans in found.items()}
    print(f"{whole.records} records of {SIZE} bytes, best of {rounds}")
    shares = {name: told(name, span, fastest["getmany, decoding"]) for name, span in fastest.items()}
    one, apart = fastest["replay, operations and inputs"], fastest["one of two processes"]
    of_one, by_cpu = max(both) / one.rate, apart.cpu_us / one.cpu_us
    print(f"  two processes: {max(both):.0f}/s, {of_one:.2f} of one; CPU a trace {by_cpu:.2f}")
    cores = 2e6 / fastest["in memory: decoding and no-op"].cpu_us
    print(f"  decoding and no-op on two cores: {cores:.0f}/s of {NOOP_GOAL}")
    return shares["replay, no-op evaluator"] >= GOAL and cores >= NOOP_GOAL


def main() -> int:
    """0 where a replay keeps `GOAL` of the plain loop and two cores decode `NOOP_GOAL`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        KafkaNode(Path(directory)) as node,
        ProcessPoolExecutor(2, get_context("spawn")) as pool,
    ):
        reached = measure(pool, node.bootstrap, chosen.records, chosen.rounds)
    print(f"goals {'reached' if reached else 'missed'}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
