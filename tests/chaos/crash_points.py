"""Crash points: steps of the real worker and of the real jobs at which a process signals itself.

The product knows nothing of them. A process that is to end wraps the step before it begins to work (`arm`).
"""

import inspect
import itertools
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from ragtide.drift import jobs
from ragtide.drift.windows import dirty, watermark
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import DirtyRow
from ragtide.stream.kafka.consumer_thread import SliceConsumerThread
from ragtide.stream.kafka.driver import SliceConsumer
from ragtide.stream.labels.reader import LabelReader
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.worker.dead_letters import DeadLetters

log = logging.getLogger(__name__)

PASSED = "went on after the crash point"
HELD = "evaluation waits for the crash point"
_PAUSE_S = 0.3  # a step that asked its process to stop is not over at once: the stop finds it under way
_HELD_S = 60.0
_HELD_FROM = 3  # slices


def _always(*arguments: Any, **named: Any) -> bool:
    return True


@dataclass(frozen=True)
class CrashPoint:
    """Just before, or just `after`, the `nth` call of a step; calls that `counts` refuses are not counted.

    `in_rebalance`: another worker has to join for it; evaluation stands still meanwhile, so that slices are in flight.
    """

    owner: Any
    step: str
    after: bool = False
    nth: int = 1
    counts: Callable[..., bool] = _always
    in_rebalance: bool = False


def _into(table: str) -> Callable[..., bool]:
    return lambda database, into, rows: into == table and bool(rows)


def _of_traces(sink: Any, block: Any) -> bool:
    return bool(block.traces)  # not a heartbeat


def _of_any(consumer: Any, revoked: Any) -> bool:
    return bool(revoked)  # not a worker's first join


def _marks(database: Any, table: str, rows: Any) -> bool:
    return any(isinstance(row, DirtyRow) for row in rows)  # not those that are taken back


def _windows(database: Any, statement: str, *more: Any, **named: Any) -> bool:
    return "INSERT INTO windows" in statement


WORKER = {
    "before decoding": CrashPoint(Pipeline, "process", nth=3),
    "after evaluating": CrashPoint(Pipeline, "process", after=True, nth=3),
    "half-way through a block": CrashPoint(Database, "insert", nth=2, counts=_into("scores")),
    "stored, not acknowledged": CrashPoint(ClickHouseSink, "write", after=True, nth=2, counts=_of_traces),
    "dead letters sent, not acknowledged": CrashPoint(DeadLetters, "send", after=True),
    "acknowledged, not committed": CrashPoint(SliceConsumer, "ack", after=True, nth=2),
    "in a rebalance, before its commit": CrashPoint(
        SliceConsumer, "on_partitions_revoked", counts=_of_any, in_rebalance=True
    ),
    "in a rebalance, after its commit": CrashPoint(
        SliceConsumer, "on_partitions_revoked", after=True, counts=_of_any, in_rebalance=True
    ),
}
JOBS = {
    "elected, nothing done": CrashPoint(Database, "insert", after=True, counts=_into("leaders")),
    "moved traces' windows marked": CrashPoint(Database, "insert", after=True, counts=_marks),
    "moved traces half taken out": CrashPoint(Database, "insert", counts=_into("traces")),
    "before the roll-up's windows": CrashPoint(Database, "command", counts=_windows),
    "windows stored, marks still there": CrashPoint(dirty, "clear_marks", counts=lambda database, term, of: bool(of)),
    "marks taken back, watermark not stored": CrashPoint(watermark, "store"),
    "judged, no problem raised": CrashPoint(Database, "insert", counts=_into("problem_events")),
    "problem raised, cursor not moved": CrashPoint(
        jobs, "commit_rule_cursor", counts=lambda database, version: version > 0
    ),
}
# Brokers were found, and are asked again by the next step.
START = {
    "sink looked for, no client of Kafka begun": CrashPoint(ClickHouseSink, "check", after=True),
    "consumer begun, no group joined": CrashPoint(SliceConsumerThread, "on_start", after=True),
    "topic of labels found, no client begun": CrashPoint(LabelReader, "_wait_for_topic", after=True),
}
POINTS = WORKER | JOBS | START


def arm(name: str, number: signal.Signals) -> None:
    """This process sends itself the signal when it comes to the point of that name, once."""
    point, reached = POINTS[name], threading.Event()
    if point.in_rebalance:
        _wrap(Pipeline, "process", _held(Pipeline.process, reached))
    _wrap(point.owner, point.step, _ending(point, number, reached))


def _wrap(owner: Any, step: str, wrapped: Callable[..., Any]) -> None:
    setattr(owner, step, wrapped)


def _ending(point: CrashPoint, number: signal.Signals, reached: threading.Event) -> Callable[..., Any]:
    step = getattr(point.owner, point.step)
    calls = itertools.count(1)

    def end() -> None:
        reached.set()
        os.kill(os.getpid(), number)
        time.sleep(_PAUSE_S)

    @contextmanager
    def crossed(*arguments: Any) -> Iterator[None]:
        due = point.counts(*arguments) and next(calls) == point.nth
        if due and not point.after:
            end()
        yield
        if due and point.after:
            end()
        if due:
            log.warning(PASSED)

    @wraps(step)
    async def awaited(*arguments: Any, **named: Any) -> Any:
        with crossed(*arguments):
            return await step(*arguments, **named)

    @wraps(step)
    def called(*arguments: Any, **named: Any) -> Any:
        with crossed(*arguments):
            return step(*arguments, **named)

    return awaited if inspect.iscoroutinefunction(step) else called


def _held(step: Callable[..., Any], reached: threading.Event) -> Callable[..., Any]:
    calls = itertools.count(1)

    @wraps(step)
    def waiting(*arguments: Any) -> Any:
        if next(calls) >= _HELD_FROM and not reached.is_set():
            log.warning(HELD)
            assert reached.wait(_HELD_S), "no rebalance came"
        return step(*arguments)

    return waiting
