"""Evaluates a range of a topic, or a file, into a run: the live pipeline over records that are read once more.

After each stored block the position is stored, so that a killed replay goes on where it was; what was stored twice is
stored once. Live windows are touched only where the run is `live` (a backfill), and live's watermark never.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from evaluators.errors import Transient
from sinks.protocol import Sink
from sinks.refusal import SetAside, write_or_set_aside
from sinks.rows import Block, DeadLetterRow
from stream.ingest.records import Record, broker_time
from stream.ingest.rows import dead_letter_row
from stream.lanes.backoff import delays
from stream.lanes.refused import by_block, dead_letters_of
from stream.pipeline import Pipeline
from stream.replay.runs import COMPLETED, STARTED, Position, RunRow, Runs

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
        work.run = run._replace(state=STARTED, traces=0, dead_letters=0)
    async with aclosing(source.read(position)) as batches:
        async for batch in batches:
            await work.take(batch)
            if len(work.block) >= block_rows:
                await work.store(batch.position)
            tell(ReplayProgress(batch.done, batch.total, work.traces, work.dead_letters))
            position = batch.position
    await work.store(position, COMPLETED)
    return work.run


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
        self.block = Block()
        self._pipeline = pipeline
        self._run_id = pipeline.run_id
        self._sink = sink
        self._runs = runs
        self._settled = settled
        self._rng = rng
        self._taken: list[tuple[Block, Sequence[Record]]] = []  # what the block is made of, batch by batch
        self._traces = 0

    @property
    def traces(self) -> int:
        return self.run.traces + self._traces

    @property
    def dead_letters(self) -> int:
        return self.run.dead_letters + len(self.block.dead_letters)

    async def take(self, batch: RecordBatch) -> None:
        """Evaluate one batch into the block."""
        processed = await asyncio.to_thread(self._pipeline.process, batch.records)
        self.block.extend(processed.block)
        self._traces += processed.decoded
        self._taken.append((processed.block, batch.records))

    async def store(self, position: Position, state: str = STARTED) -> None:
        """The block, then the position after it."""
        refused = await self._durably(lambda: write_or_set_aside(self._sink, self.block))
        if letters := self._dead_letters(refused):
            self.block.dead_letters += letters
            await self._durably(lambda: write_or_set_aside(self._sink, Block(dead_letters=letters)))
        if (settled := self._settled) is not None and (stored := self._stored()):
            await self._durably(lambda: settled(stored))
        row = self.run._replace(
            state=state,
            position=msgspec.json.encode(position).decode(),
            traces=self.traces,
            dead_letters=self.dead_letters,
            version=self.run.version + 1,
        )
        await self._durably(lambda: self._runs.store(row))
        self.run = row
        self.block, self._taken, self._traces = Block(), [], 0

    def _stored(self) -> list[Record]:
        dead = {(row.topic, row.partition, row.offset, row.time) for row in self.block.dead_letters}
        records = [record for _, batch in self._taken for record in batch]
        return [at for at in records if (at.topic, at.partition, at.offset, broker_time(at)) not in dead]

    def _dead_letters(self, refused: Sequence[SetAside]) -> list[DeadLetterRow]:
        """A record whose row the sink will never take is a dead letter of the run, once, however many rows it had."""
        by_batch = by_block(refused, [block for block, _ in self._taken])
        return [
            dead_letter_row(letter, self._run_id)
            for (_, records), found in zip(self._taken, by_batch, strict=True)
            for letter in dead_letters_of(found, records)
        ]

    async def _durably(self, call: Callable[[], Result]) -> Result:
        """The result, once the other side is there to give it."""
        waits = delays(self._rng)
        while True:
            try:
                return await asyncio.to_thread(call)
            except Transient as error:
                log.warning("cannot store yet, trying again until it can: %s", error)
                await asyncio.sleep(next(waits))
