"""Ways in which a lane ends: `python -m tests.stream.core.lane_endings NAME BOOTSTRAP TOPIC [SECONDS]`.

In a process of its own, since Faust leaves a thread's loop and sockets to the end of the process.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.memory import MemorySink
from ragtide.stream.pipeline import SliceResult
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sections import KafkaSettings, TelemetrySettings, WorkerSettings
from ragtide.stream.worker.lane import LaneRuntime, run_lane


class Nothing:
    """A pipeline that is never asked."""

    def process(self, records: Any) -> SliceResult:
        return SliceResult()


class Locked(MemorySink):
    """A sink whose password is wrong."""

    def check(self) -> str:
        raise ConfigError("the password is wrong: correct clickhouse.password")


def settings_of(bootstrap: str, topic: str) -> Settings:
    kafka = KafkaSettings(
        bootstrap_servers=bootstrap,
        topics=(topic,),
        dead_letter_topic=f"{topic}.dead",
        group_prefix=topic,
        session_timeout_s=6,
        heartbeat_s=1,
        rebalance_timeout_s=8,
    )
    return Settings(kafka=kafka, worker=WorkerSettings(heartbeat_s=0.2), telemetry=TelemetrySettings(port=0))


async def crash(settings: Settings) -> None:
    """Something inside Faust gives up."""
    parts = LaneRuntime(settings, "fast", Nothing(), MemorySink(), 0)
    async with parts.started() as tasks:
        while parts.health.ready():
            await asyncio.sleep(0.1)
        await parts._app.consumer.crash(OSError("lost for good"))
        ended, _ = await asyncio.wait(tasks, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        (error,) = [task.exception() for task in ended]
        assert isinstance(error, OSError)
        assert "lost for good" in str(error)


async def locked(settings: Settings) -> None:
    """The sink says that a person must act."""
    said = "nothing"
    try:
        await run_lane(settings, "model", Nothing(), Locked(), asyncio.Event(), port=0)
    except ConfigError as error:
        said = str(error)
    assert "clickhouse.password" in said


async def early(settings: Settings, after_s: float) -> None:
    """It is stopped while it starts."""
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(after_s, stop.set)
    await asyncio.wait_for(run_lane(settings, "fast", Nothing(), MemorySink(), stop, port=0), 30)


if __name__ == "__main__":
    name, bootstrap, topic, *seconds = sys.argv[1:]
    ways: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {"crash": crash, "locked": locked, "early": early}
    asyncio.run(ways[name](settings_of(bootstrap, topic), *map(float, seconds)))
