"""The `worker` process: one lane or stage here, or one child process for each. A stop drains and commits."""

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from multiprocessing.connection import wait
from typing import Any, Literal, TypeAlias

from ragtide.evaluators.errors import DeviceLost, RagtideError
from ragtide.evaluators.spec import Lane
from ragtide.stream.settings.loader import Settings
from ragtide.stream.sigterm import exit_at_sigterm
from ragtide.stream.telemetry import logs

log = logging.getLogger(__name__)

Part: TypeAlias = Lane | Literal["assemble"]  # what a worker runs: a lane, or the stage before them

STOPPED = 0
CRASHED = 1
WRONG_SETTINGS = 2
_CHILD_GRACE_S = 25.0  # on top of worker.drain_s, before a child that does not end is killed
_THREAD_GRACE_S = 1.0
_CANCELS, _CANCEL_S = 10, 0.2


def run(settings: Settings, lanes: Sequence[Part]) -> int:
    """Run until SIGTERM or SIGINT. Exit status: 0 stopped in order, 1 a bug or a lost GPU, 2 settings must change.

    Several lanes run in one child process each; if one ends unexpectedly the others are stopped. The n-th lane serves
    telemetry on the n-th port from telemetry.port on.
    """
    if len(lanes) == 1:
        return run_lane_process(settings, lanes[0], settings.telemetry.port)
    return _run_children(settings, lanes)


def run_lane_process(settings: Settings, lane: Part, port: int) -> int:
    """Run one lane in this process; exit status as for `run`."""
    logs.configure(settings.telemetry)
    status = STOPPED
    try:
        asyncio.run(_run_until_signal(settings, lane, port))
    except DeviceLost as error:
        log.error("lane %s stopped: %s; uncommitted records will be read again", lane, error)
        status = CRASHED
    except RagtideError as error:
        log.error("lane %s stopped: %s", lane, error)
        status = WRONG_SETTINGS
    except Exception:  # the edge of the process
        log.exception("lane %s crashed; uncommitted records will be read again", lane)
        status = CRASHED
    _join_threads(status)
    return status


def collect_garbage_seldom() -> None:
    """Collect garbage rarely: records and rows have no cycles, and scanning 100,000 took half of a lane's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def _run_until_signal(settings: Settings, lane: Part, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop.set)
    parent = multiprocessing.parent_process()
    if parent is not None:
        loop.add_reader(parent.sentinel, _parent_died, loop, parent.sentinel, stop)
    if lane == "assemble":
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        await _run_assembly(settings, stop, port)
    else:
        await _run_lane(settings, lane, stop, port)


async def _run_assembly(settings: Settings, stop: asyncio.Event, port: int) -> None:
    from ragtide.stream.worker.assembly.runtime import run_assembly

    collect_garbage_seldom()
    try:
        await run_assembly(settings, stop, port=port)
    finally:
        await _cancel_tasks()


async def _run_lane(settings: Settings, lane: Lane, stop: asyncio.Event, port: int) -> None:
    from ragtide.evaluators import registry
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.sinks.clickhouse.sink import ClickHouseSink
    from ragtide.stream.assembly import assemble
    from ragtide.stream.companion_search import with_found_companions
    from ragtide.stream.worker.lane import run_lane

    loop = asyncio.get_running_loop()
    database = Database(settings.clickhouse)
    evaluators = registry.load(settings.evaluators)
    if lane == "judge":
        settings = await asyncio.to_thread(with_found_companions, settings, evaluators, database)
    assembled = await asyncio.to_thread(assemble, settings, lane, evaluators=evaluators, database=database)
    loop.add_signal_handler(signal.SIGTERM, stop.set)  # until here nothing is begun, and SIGTERM ends it at once
    sink = ClickHouseSink(database)
    collect_garbage_seldom()
    fresh = assembled.topics.refresh_in_background() if assembled.topics else nullcontext()
    try:
        with fresh:
            resources, topics = assembled.resources, assembled.topics
            await run_lane(
                settings, lane, assembled.pipeline, sink, stop, port=port, resources=resources, topics=topics
            )
    finally:
        await _cancel_tasks()
        await asyncio.to_thread(assembled.resources.close)  # before the database: it gives back a judge's budget
        sink.close()


def _parent_died(loop: asyncio.AbstractEventLoop, sentinel: int, stop: asyncio.Event) -> None:
    """Stop, because the parent died and nobody else will stop this process."""
    loop.remove_reader(sentinel)
    stop.set()


async def _cancel_tasks() -> None:
    """Cancel tasks that still wait for brokers, repeatedly.

    Faust's commit takes one cancellation for the end of the commit before it, and starts again.
    """
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for _ in range(_CANCELS):
        if not left:
            return
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_CANCEL_S)


def _join_threads(status: int) -> None:
    """Wait for threads, then exit without those that still evaluate or write: their records are read again."""
    ours = [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]
    deadline = time.monotonic() + _THREAD_GRACE_S
    for thread in ours:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in ours):
        log.warning("some threads did not finish in time; uncommitted records will be read again")
        logging.shutdown()
        os._exit(status)


def _run_children(settings: Settings, lanes: Sequence[Part]) -> int:
    logs.configure(settings.telemetry)
    context = multiprocessing.get_context("spawn")
    first = settings.telemetry.port
    children = [
        context.Process(target=_run_child, args=(settings, lane, first + number if first else 0), name=f"lane {lane}")
        for number, lane in enumerate(lanes)
    ]
    stop_requested = False

    def stop(*_: Any) -> None:
        nonlocal stop_requested
        stop_requested = True
        for child in children:
            if child.is_alive():
                child.terminate()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    for child in children:
        if not stop_requested:
            child.start()
    started = [child for child in children if child.pid is not None]
    ended = wait([child.sentinel for child in started])  # a child is not always reaped when its sentinel says so
    by_itself = not stop_requested
    if by_itself:
        names = " and ".join(child.name for child in started if child.sentinel in ended)
        log.error("%s ended unexpectedly; stopping the other lanes", names)
        stop()
    deadline = time.monotonic() + settings.worker.drain_s + _CHILD_GRACE_S
    for child in started:
        child.join(max(0.0, deadline - time.monotonic()))
        if child.is_alive():
            log.error("%s did not stop in time; killing it, uncommitted records will be read again", child.name)
            child.kill()
            child.join()
    statuses = [_exit_status(child.exitcode) for child in started]
    return max(statuses, default=STOPPED) or (CRASHED if by_itself else STOPPED)


def _exit_status(code: int | None) -> int:
    """Exit status of a child. One that SIGTERM killed before it could handle it had started nothing."""
    if code == -signal.SIGTERM:
        return STOPPED
    return CRASHED if code is None or code < 0 else code


def _run_child(settings: Settings, lane: Part, port: int) -> None:
    exit_at_sigterm()
    sys.exit(run_lane_process(settings, lane, port))
