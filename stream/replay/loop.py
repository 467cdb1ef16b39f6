"""Evaluate a range of a topic, or a file, into a run: the live pipeline over records that are read again.

After each stored block the position is stored, so that a killed replay continues there; a row stored twice is one row.
One block is stored while the next is evaluated. Only a replay into `live` (a backfill) changes live windows. No replay
changes a live watermark.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from ragtide.evaluators.errors import Transient
from ragtide.sinks.bisect import RejectedRow, write_or_reject
from ragtide.sinks.protocol import Sink
from ragtide.sinks.rows import Block, DeadLetterRow
from ragtide.stream.ingest.records import Record, broker_time
from ragtide.stream.ingest.rows import dead_letter_row
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.replay.runs import COMPLETED, STARTED, Position, RunRow, Runs
from ragtide.stream.worker.backoff import delays
from ragtide.stream.worker.rejected_rows import dead_letters_of, rejected_by_block

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class RecordBatch(NamedTuple):
    """Records of one partition, the position after them, and how far it is: `done` of `total`, as the source counts."""

    records: Sequence[Record]
    position: Position
    done: int
    total: int


class ReplaySource(Protocol):
    """Something that gives the same records whenever it is read from the same position."""

    description: str
    identity: str

    def rewind(self, position: Position) -> Position:
        """The position at the beginning of the same range."""
        ...

    def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
        """Yield batches from `position` to the end of the range. Raises `ConfigError` or `Transient`."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """How far a replay is."""

    done: int
    total: int
    traces: int
    dead_letters: int


async def replay(
    source: ReplaySource,
    pipeline: Pipeline,
    sink: Sink,
    runs: Runs,
    run: RunRow,
    *,
    block_rows: int,
    report: Callable[[ReplayProgress], None] = lambda progress: None,
    on_stored: Callable[[Sequence[Record]], None] | None = None,
    rng: random.Random | None = None,
) -> RunRow:
    """Replay the source and return the completed run. A completed run is repeated and leaves the same rows.

    `on_stored` gets the records whose rows are stored, block by block, without dead letters.
    """
    work = _Replay(pipeline, sink, runs, run, on_stored, rng or random.Random())
    position = run.where
    if run.state == COMPLETED:
        position = source.rewind(position)
        work.restart()
    try:
        async with aclosing(source.read(position)) as batches:
            async for batch in batches:
                await work.take(batch)
                position = batch.position
                if len(work.filling.block) >= block_rows:
                    await work.start_storing(position)
                report(ReplayProgress(batch.done, batch.total, work.traces, work.dead_letters))
        await work.start_storing(position, COMPLETED)
        await work.wait_stored()
    finally:
        await work.cancel()
    return work.run


@dataclass(slots=True)
class _BlockInProgress:
    """Rows that are stored together, and the records that they come from, batch by batch."""

    block: Block = field(default_factory=Block)
    batches: list[tuple[Block, Sequence[Record]]] = field(default_factory=list)

    def new_dead_letters(self, rejected: Sequence[RejectedRow], run_id: str) -> list[DeadLetterRow]:
        """Dead letters of the run: one per record with a row that the sink rejected."""
        by_batch = rejected_by_block(rejected, [block for block, _ in self.batches])
        return [
            dead_letter_row(letter, run_id)
            for (_, records), found in zip(self.batches, by_batch, strict=True)
            for letter in dead_letters_of(found, records)
        ]

    def stored_records(self) -> list[Record]:
        """The records without a dead letter."""
        dead = {(row.topic, row.partition, row.offset, row.time) for row in self.block.dead_letters}
        records = [record for _, batch in self.batches for record in batch]
        return [at for at in records if (at.topic, at.partition, at.offset, broker_time(at)) not in dead]


class _Replay:
    def __init__(
        self,
        pipeline: Pipeline,
        sink: Sink,
        runs: Runs,
        run: RunRow,
        on_stored: Callable[[Sequence[Record]], None] | None,
        rng: random.Random,
    ) -> None:
        self.run = run
        self.traces = run.traces
        self.dead_letters = run.dead_letters
        self.filling = _BlockInProgress()
        self._pipeline = pipeline
        self._sink = sink
        self._runs = runs
        self._on_stored = on_stored
        self._rng = rng
        self._storing: asyncio.Task[None] | None = None

    def restart(self) -> None:
        """Start a completed run over."""
        self.run = self.run._replace(state=STARTED, traces=0, dead_letters=0)
        self.traces = self.dead_letters = 0

    async def take(self, batch: RecordBatch) -> None:
        """Evaluate one batch into the block."""
        processed = await asyncio.to_thread(self._pipeline.process, batch.records)
        self.filling.block.extend(processed.block)
        self.filling.batches.append((processed.block, batch.records))
        self.traces += processed.decoded
        self.dead_letters += len(processed.block.dead_letters)

    async def start_storing(self, position: Position, state: str = STARTED) -> None:
        """Store the block, then the position after it, once the block before is stored: at most two are in memory."""
        await self.wait_stored()
        filled, self.filling = self.filling, _BlockInProgress()
        row = self.run._replace(
            state=state,
            position=msgspec.json.encode(position).decode(),
            traces=self.traces,
            dead_letters=self.dead_letters,
            version=self.run.version + 1,
        )
        self._storing = asyncio.create_task(self._store(filled, row))

    async def wait_stored(self) -> None:
        """Wait until the block in progress is stored; raise its error."""
        if self._storing is not None:
            await self._storing
            self._storing = None

    async def cancel(self) -> None:
        """Abandon the block in progress: the next replay stores it."""
        if self._storing is not None:
            self._storing.cancel()
            await asyncio.gather(self._storing, return_exceptions=True)

    async def _store(self, filled: _BlockInProgress, row: RunRow) -> None:
        block = filled.block
        rejected = await self._retry_until_stored(lambda: write_or_reject(self._sink, block))
        if letters := filled.new_dead_letters(rejected, self._pipeline.run_id):
            block.dead_letters += letters
            self.dead_letters += len(letters)
            row = row._replace(dead_letters=row.dead_letters + len(letters))
            await self._retry_until_stored(lambda: write_or_reject(self._sink, Block(dead_letters=letters)))
        if (on_stored := self._on_stored) is not None and (records := filled.stored_records()):
            await self._retry_until_stored(lambda: on_stored(records))
        await self._retry_until_stored(lambda: self._runs.store(row))
        self.run = row

    async def _retry_until_stored(self, call: Callable[[], Result]) -> Result:
        """Call until it succeeds, with pauses while ClickHouse is away."""
        waits = delays(self._rng)
        while True:
            try:
                return await asyncio.to_thread(call)
            except Transient as error:
                log.warning("the sink does not accept rows: %s; retrying", error)
                await asyncio.sleep(next(waits))
