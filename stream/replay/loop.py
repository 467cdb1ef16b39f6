"""Evaluates a range of a topic, or a file, into a run: the live pipeline over records that are read once more.

After each stored block the position is stored, so that a killed replay goes on where it was; what was stored twice is
stored once. One block is stored while the next is evaluated. Live windows are touched only where the run is `live` (a
backfill), and live's watermark never.
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

    def rewound(self, position: Position) -> Position:
        """Where to start over, over the same range."""
        ...

    def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
        """From `position` to the end of the range; raises `ConfigError` or `Transient`."""
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
    tell: Callable[[ReplayProgress], None] = lambda progress: None,
    settled: Callable[[Sequence[Record]], None] | None = None,
    rng: random.Random | None = None,
) -> RunRow:
    """The completed run. A run that was completed before is done once more and leaves the same rows.

    `settled` is told of the records whose rows have been stored, block by block; dead letters are not among them.
    """
    work = _Replay(pipeline, sink, runs, run, settled, rng or random.Random())
    position = run.where
    if run.state == COMPLETED:
        position = source.rewound(position)
        work.begin_anew()
    try:
        async with aclosing(source.read(position)) as batches:
            async for batch in batches:
                await work.take(batch)
                position = batch.position
                if len(work.filling.block) >= block_rows:
                    await work.begin_to_store(position)
                tell(ReplayProgress(batch.done, batch.total, work.traces, work.dead_letters))
        await work.begin_to_store(position, COMPLETED)
        await work.stored()
    finally:
        await work.give_up()
    return work.run


@dataclass(slots=True)
class _Filling:
    """Rows that are stored together, and what they are made of, batch by batch."""

    block: Block = field(default_factory=Block)
    taken: list[tuple[Block, Sequence[Record]]] = field(default_factory=list)

    def refused(self, asides: Sequence[RejectedRow], run_id: str) -> list[DeadLetterRow]:
        """A record whose row the sink will never take is a dead letter of the run, once, however many rows it had."""
        by_batch = rejected_by_block(asides, [block for block, _ in self.taken])
        return [
            dead_letter_row(letter, run_id)
            for (_, records), found in zip(self.taken, by_batch, strict=True)
            for letter in dead_letters_of(found, records)
        ]

    def settled(self) -> list[Record]:
        """The records that are no dead letters."""
        dead = {(row.topic, row.partition, row.offset, row.time) for row in self.block.dead_letters}
        records = [record for _, batch in self.taken for record in batch]
        return [at for at in records if (at.topic, at.partition, at.offset, broker_time(at)) not in dead]


class _Replay:
    def __init__(
        self,
        pipeline: Pipeline,
        sink: Sink,
        runs: Runs,
        run: RunRow,
        settled: Callable[[Sequence[Record]], None] | None,
        rng: random.Random,
    ) -> None:
        self.run = run
        self.traces = run.traces
        self.dead_letters = run.dead_letters
        self.filling = _Filling()
        self._pipeline = pipeline
        self._sink = sink
        self._runs = runs
        self._settled = settled
        self._rng = rng
        self._storing: asyncio.Task[None] | None = None

    def begin_anew(self) -> None:
        """Of a run that was completed."""
        self.run = self.run._replace(state=STARTED, traces=0, dead_letters=0)
        self.traces = self.dead_letters = 0

    async def take(self, batch: RecordBatch) -> None:
        """Evaluate one batch into the block."""
        processed = await asyncio.to_thread(self._pipeline.process, batch.records)
        self.filling.block.extend(processed.block)
        self.filling.taken.append((processed.block, batch.records))
        self.traces += processed.decoded
        self.dead_letters += len(processed.block.dead_letters)

    async def begin_to_store(self, position: Position, state: str = STARTED) -> None:
        """The block, then the position after it, once the block before is stored: two are held at most."""
        await self.stored()
        filled, self.filling = self.filling, _Filling()
        row = self.run._replace(
            state=state,
            position=msgspec.json.encode(position).decode(),
            traces=self.traces,
            dead_letters=self.dead_letters,
            version=self.run.version + 1,
        )
        self._storing = asyncio.create_task(self._store(filled, row))

    async def stored(self) -> None:
        """Returns when all that was begun is stored; raises what that raised."""
        if self._storing is not None:
            await self._storing
            self._storing = None

    async def give_up(self) -> None:
        """What was begun and is not stored is left to whoever goes on."""
        if self._storing is not None:
            self._storing.cancel()
            await asyncio.gather(self._storing, return_exceptions=True)

    async def _store(self, filled: _Filling, row: RunRow) -> None:
        block = filled.block
        asides = await self._durably(lambda: write_or_reject(self._sink, block))
        if letters := filled.refused(asides, self._pipeline.run_id):
            block.dead_letters += letters
            self.dead_letters += len(letters)
            row = row._replace(dead_letters=row.dead_letters + len(letters))
            await self._durably(lambda: write_or_reject(self._sink, Block(dead_letters=letters)))
        if (settled := self._settled) is not None and (records := filled.settled()):
            await self._durably(lambda: settled(records))
        await self._durably(lambda: self._runs.store(row))
        self.run = row

    async def _durably(self, call: Callable[[], Result]) -> Result:
        """The result, once the other side is there to give it."""
        waits = delays(self._rng)
        while True:
            try:
                return await asyncio.to_thread(call)
            except Transient as error:
                log.warning("the sink does not accept rows: %s; retrying", error)
                await asyncio.sleep(next(waits))
