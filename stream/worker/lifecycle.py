"""Mechanics that every member of a consumer group has: wait for what it needs, end in time, say why it ended."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ragtide.evaluators.errors import Transient
from ragtide.stream.telemetry.health import LaneHealth
from ragtide.stream.worker.backoff import delays

log = logging.getLogger(__name__)

Task = asyncio.Task[None]


async def retry_until_ready(
    lane: str, health: LaneHealth, what: str, attempt: Callable[[], Awaitable[str]], *, once: bool = False
) -> None:
    """Retry until it succeeds (or try `once`: the caller retries later). Raises `ConfigError`."""
    for delay in delays(random.Random()):
        try:
            log.info("lane %s: %s", lane, await attempt())
        except Transient as error:
            log.warning("lane %s: %s", lane, error)
            health.waits_for("start", f"{what}: {error}")
            if not once:
                await asyncio.sleep(delay)
                continue
        return


async def end_within(lane: str, ending: Coroutine[Any, Any, object], seconds: float, warning: str) -> None:
    """Wait this long, then abandon it without cancelling: Faust would take that for another commit's end."""
    task = asyncio.create_task(ending)
    await asyncio.wait({task}, timeout=seconds)
    if task.done():
        task.result()
    else:
        log.warning("lane %s: %s", lane, warning)


def reason_to_stop(ended: set[Task]) -> BaseException:
    """The error to stop with: anything that an operator must fix before a bug."""
    errors = [task.exception() for task in ended if not task.cancelled()]
    found = [error for error in errors if error is not None]
    found.sort(key=lambda error: not isinstance(error, Exception))
    return found[0] if found else RuntimeError(f"ended unexpectedly: {', '.join(task.get_name() for task in ended)}")


async def wait_for_stop(stop: asyncio.Event) -> None:
    """Wait for the event; a task that returns nothing."""
    await stop.wait()
