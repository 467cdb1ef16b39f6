"""Memory and lag of a worker while something goes on."""

import asyncio
import sys
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import psutil

from tests.chaos.processes import Ragtide
from tests.chaos.soak.verdicts import Sample

_EVERY_S = 2.0


def say(line: str) -> None:
    """At once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass
class Watched:
    """A worker, from now on."""

    worker: Ragtide
    began: float = field(default_factory=time.monotonic)

    async def during(self, work: Coroutine[Any, Any, None]) -> list[Sample]:
        """Samples until the work is done and one after it; prints a line a minute. What the work raises is raised."""
        process, samples, going_on = psutil.Process(self.worker.process.pid), list[Sample](), asyncio.create_task(work)
        done = False
        while not done:
            done = going_on.done()
            await asyncio.sleep(_EVERY_S)
            lag = await self.metric("ragtide_lag_records")
            samples.append(Sample(time.monotonic() - self.began, process.memory_info().rss / 1e6, lag))
            if len(samples) % round(60 / _EVERY_S) == 0:
                say(f"{samples[-1].at_s / 60:5.1f} min  {samples[-1].rss_mb:6.1f} MB  lag {lag:6.0f} records")
        await going_on
        return samples

    async def metric(self, name: str) -> float:
        """The sum of its samples now."""
        return await asyncio.to_thread(self.worker.metric, name)
