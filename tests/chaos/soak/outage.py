"""The sink is taken away at full input for some minutes, and comes back: what is seen of it."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.stream.settings.sections import MEMORY_PER_BYTE_IN_FLIGHT, WorkerSettings
from tests.chaos.soak.sending import Sender
from tests.chaos.soak.verdicts import Outage, Rows, Sample, last_fifth, worked_off
from tests.chaos.soak.watching import Watched, say

MINUTES = 10.0
TIMES_IN_FLIGHT = 16  # of what may be in flight is sent in `MINUTES`, and less in less, but at least:
LEAST_TIMES = 4
IN_FLIGHT = WorkerSettings().in_flight_bytes
ALLOWED_BYTES = MEMORY_PER_BYTE_IN_FLIGHT * IN_FLIGHT  # more than before, as the setting's description says
PAUSED = "ragtide_fetch_paused_seconds_total"
_TABLES = {"traces": "1", "scores": "evaluator = 'operations'"}  # that one scores every trace


@dataclass(frozen=True, slots=True)
class Scene:
    """A worker, its input and its sink."""

    watched: Watched
    sender: Sender
    server: EmbeddedClickHouse
    database: Database

    async def without_the_sink(self, steady: Sequence[Sample], away_s: float) -> Outage:
        """`steady`: the worker before. What was in flight then is worked off for at most as long as it was away."""
        before = float(np.median([sample.rss_mb for sample in last_fifth(steady)]))
        sent, sent_bytes = self.sender.sent, self.sender.sent_bytes
        paused_s = await self.watched.metric(PAUSED)
        say(f"ClickHouse is away for {away_s / 60:g} min, at full input")
        await asyncio.to_thread(self.server.kill)
        away = await self.watched.during(self._full_input(away_s))
        paused_s = await self.watched.metric(PAUSED) - paused_s
        await asyncio.to_thread(self.server.start)
        say(f"ClickHouse is back; {self.sender.sent - sent} traces came meanwhile")
        after = await self.watched.during(self._work_off(away_s))
        bound = self.sender.sent if worked_off(after) else sent
        stored, scored = [await asyncio.to_thread(self._rows, table, bound) for table in _TABLES]
        return Outage(
            away_s=away_s,
            paused_s=paused_s,
            input_bytes=self.sender.sent_bytes - sent_bytes,
            in_flight_bytes=IN_FLIGHT,
            before_mb=before,
            allowed_mb=before + ALLOWED_BYTES / 1e6,
            away=away,
            after=after,
            bound=bound,
            stored=stored,
            scored=scored,
        )

    async def _full_input(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        times = max(LEAST_TIMES, TIMES_IN_FLIGHT * seconds / (MINUTES * 60))
        await self.sender.in_full(seconds, int(times * IN_FLIGHT))
        await asyncio.sleep(max(0.0, ends - time.monotonic()))

    async def _work_off(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and await self.watched.metric("ragtide_lag_records") > 0:
            await asyncio.sleep(1)

    def _rows(self, table: str, bound: int) -> Rows:
        """Of the traces whose number is less than `bound`."""
        (found,) = self.database.rows(
            f"SELECT count() AS rows, uniqExact(trace_id) AS traces FROM {table} FINAL "
            f"WHERE {_TABLES[table]} AND toUInt64(substring(trace_id, {len('trace-') + 1})) < {bound}"
        )
        return Rows(int(found["rows"]), int(found["traces"]))
