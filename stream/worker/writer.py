"""One bounded writer per process: many small blocks in, few large ones out, in order."""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ragtide.evaluators.errors import Transient
from ragtide.sinks.bisect import RejectedRow
from ragtide.sinks.rows import Block
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.worker.backoff import delays
from ragtide.stream.worker.rejected_rows import rejected_by_block

log = logging.getLogger(__name__)

Write = Callable[[Block], Sequence[RejectedRow]]
_TABLES = (
    ("traces", "traces"),
    ("trace_texts", "texts"),
    ("scores", "scores"),
    ("explanations", "explanations"),
    ("embeddings", "embeddings"),
    ("dead_letters", "dead_letters"),
)


@dataclass(slots=True)
class _PendingBlock:
    block: Block
    stored: "asyncio.Future[list[RejectedRow]]"
    since: float


@dataclass(slots=True)
class Writer:
    """Stores blocks in the order given; what the sink cannot take yet is tried for ever, what it refuses set aside.

    `write` blocks and runs in a thread. Blocks are written together up to `block_rows` rows or `block_wait_s`, or as
    soon as `pressed` says that the source runs out of room. Not more than `waiting_rows` rows wait: `put` holds the
    caller back.
    """

    write: Write
    telemetry: Telemetry
    block_rows: int = 10_000
    block_wait_s: float = 0.5
    max_pending_rows: int = 200_000
    under_pressure: Callable[[], bool] = lambda: False
    rng: random.Random = field(default_factory=random.Random)
    clock: Callable[[], float] = time.monotonic
    blocked_since: float | None = None  # by `clock`; None while the sink takes what it is given
    _pending: deque[_PendingBlock] = field(default_factory=deque)
    _rows: int = 0
    _closing: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _room: asyncio.Event = field(default_factory=asyncio.Event)

    async def put(self, block: Block) -> "asyncio.Future[list[RejectedRow]]":
        """Accept a block, in order, as soon as there is room; the future completes when it is durable.

        Its result are the rejected rows of this block.
        """
        while self._rows >= self.max_pending_rows:
            self._room.clear()
            await self._room.wait()
        stored: asyncio.Future[list[RejectedRow]] = asyncio.get_running_loop().create_future()
        self._pending.append(_PendingBlock(block, stored, self.clock()))
        self._rows += len(block)
        self._changed.set()
        return stored

    async def store(self, block: Block) -> list[RejectedRow]:
        """Store the block; return its rejected rows once it is durable."""
        return await (await self.put(block))

    def close(self) -> None:
        """Let `run` end once everything accepted is stored."""
        self._closing = True
        self._changed.set()

    async def run(self) -> None:
        """Write until closed. Raises all errors of `write` but `Transient`: an operator must act."""
        with ThreadPoolExecutor(1, thread_name_prefix="writer") as executor:
            while await self._wait_for_block():
                await self._write_next(executor)

    async def _write_next(self, executor: ThreadPoolExecutor) -> None:
        """Write one block, and keep none of its rows: the next block may take long to fill."""
        pending = self._take()
        block = _merge(pending)
        started = self.clock()
        rejected = await self._write_with_retries(executor, block)
        self._count(block, rejected, self.clock() - started)
        per_block = rejected_by_block(rejected, [waiting.block for waiting in pending])
        for waiting, own in zip(pending, per_block, strict=True):
            if not waiting.stored.done():
                waiting.stored.set_result(own)

    async def _wait_for_block(self) -> bool:
        """Wait until there is a block worth writing; False: closed, and nothing is left."""
        while True:
            self._changed.clear()
            if self._pending:
                left = self._pending[0].since + self.block_wait_s - self.clock()
                if self._closing or self._rows >= self.block_rows or left <= 0 or self.under_pressure():
                    return True
            elif self._closing:
                return False
            else:
                left = None
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                continue

    def _take(self) -> list[_PendingBlock]:
        taken, rows = [], 0
        while self._pending and rows < self.block_rows:
            waiting = self._pending.popleft()
            rows += len(waiting.block)
            taken.append(waiting)
        return taken

    async def _write_with_retries(self, executor: ThreadPoolExecutor, block: Block) -> Sequence[RejectedRow]:
        loop = asyncio.get_running_loop()
        waits = delays(self.rng)
        while True:
            try:
                rejected = await loop.run_in_executor(executor, self.write, block)
            except Transient as error:
                if self.blocked_since is None:
                    self.blocked_since = self.clock()
                    log.warning("the sink does not accept rows: %s; retrying", error)
                self.telemetry.write_retries.inc()
                self.telemetry.sink_blocked_seconds.set(self.clock() - self.blocked_since)
                await asyncio.sleep(next(waits))
            else:
                if self.blocked_since is not None:
                    log.info("the sink accepts rows again after %.1f s", self.clock() - self.blocked_since)
                self.blocked_since = None
                self.telemetry.sink_blocked_seconds.set(0)
                return rejected

    def _count(self, block: Block, rejected: Sequence[RejectedRow], seconds: float) -> None:
        self._rows -= len(block)
        self._room.set()
        self.telemetry.write_seconds.observe(seconds)
        for table, name in _TABLES:
            rows = len(getattr(block, name))
            if rows:
                self.telemetry.rows.labels(table).inc(rows)
        for found in rejected:
            self.telemetry.set_aside.labels(found.table).inc()


def _merge(pending: Sequence[_PendingBlock]) -> Block:
    if len(pending) == 1:
        return pending[0].block
    block = Block()
    for waiting in pending:
        block.extend(waiting.block)
    block.progress = list({(row.lane, row.topic, row.partition): row for row in block.progress}.values())
    return block
