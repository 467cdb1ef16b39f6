"""The work of a lane: slices in, rows and dead letters out, an acknowledgement once both are stored."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from ragtide.sinks.bisect import RejectedRow
from ragtide.sinks.rows import LIVE, Block
from ragtide.stream.ingest.records import DeadLetter, Record
from ragtide.stream.ingest.rows import dead_letter_row
from ragtide.stream.kafka.offsets import Lag, Partition
from ragtide.stream.pipeline import SliceResult
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.worker.dead_letter_limit import DeadLetterLimit, TooManyDeadLetters
from ragtide.stream.worker.progress import LaneProgress
from ragtide.stream.worker.rejected_rows import dead_letters_of
from ragtide.stream.worker.slice_queue import SliceQueue
from ragtide.stream.worker.unknown_fields import UnknownFields
from ragtide.stream.worker.writer import Writer


class RecordProcessor(Protocol):
    """Interface of the pipeline."""

    def process(self, records: Sequence[Record]) -> SliceResult:
        """Process every record. Blocks, so it is called in a thread."""
        ...


class DeadLetterSender(Protocol):
    """Interface of the dead-letter topic."""

    async def send(self, letters: Sequence[DeadLetter]) -> None:
        """Return once every letter is acknowledged."""
        ...


class SliceProcessor:
    """Processes slices one by one in its own thread, and acknowledges each once it is stored.

    Slices of a partition reach the writer in order. The caller of `submit` limits the queue. `stop_topic` stops reading
    a topic of too many dead letters, for this reason; it returns False where the lane reads no other topic.
    """

    def __init__(
        self,
        lane: str,
        pipeline: RecordProcessor,
        writer: Writer,
        dead_letters: DeadLetterSender | None,
        limit: DeadLetterLimit,
        progress: LaneProgress,
        telemetry: Telemetry,
        lag: Callable[[Partition], Lag | None],
        stop_topic: Callable[[str, TooManyDeadLetters], bool],
    ) -> None:
        self._lane = lane
        self._pipeline = pipeline
        self._writer = writer
        self._dead_letters = dead_letters
        self._limit = limit
        self._progress = progress
        self._telemetry = telemetry
        self._lag = lag
        self._stop_topic = stop_topic
        self._unknown_fields = UnknownFields(telemetry)
        self._slices = SliceQueue(f"evaluate-{lane}", self._process)

    def submit(self, event: Any) -> None:
        """Take a slice's event; neither blocks nor raises."""
        self._slices.submit(event)

    @property
    def is_idle(self) -> bool:
        """Whether all accepted work is finished."""
        return self._slices.is_idle

    def stop_accepting(self) -> None:
        """Finish work in progress; the next owner reads queued slices again."""
        self._slices.stop_accepting()

    async def run(self) -> None:
        """Run until cancelled; raise errors that no retry can fix."""
        await self._slices.run()

    async def _process(self, event: Any, executor: ThreadPoolExecutor) -> None:
        """Process one slice, and keep none of its rows: they are stored before the next slice has rows."""
        if not event.value.ticket.valid:
            return  # its partition is somebody else's by now
        records, loop = event.value.records, asyncio.get_running_loop()
        with self._telemetry.process_seconds.labels(self._lane).time():
            processed = await loop.run_in_executor(executor, self._pipeline.process, records)
        self._count(records, processed)
        if not self._has_too_many_dead_letters(records, processed):
            await self._submit_rows(event, records, processed)

    def _count(self, records: Sequence[Record], processed: SliceResult) -> None:
        telemetry = self._telemetry
        telemetry.records.labels(self._lane).inc(len(records))
        for reason, count in processed.skipped.items():
            telemetry.skipped.labels(self._lane, reason).inc(count)
        for (evaluator, status), count in processed.outcomes.items():
            telemetry.outcomes.labels(evaluator, status).inc(count)
        for field, count in processed.adjustments.cut.items():
            telemetry.names_cut.labels(self._lane, field).inc(count)
        for (rule, field), count in processed.adjustments.normalised.items():
            telemetry.normalised.labels(self._lane, rule, field).inc(count)
        for evaluator, count in processed.evidence_cut.items():
            telemetry.evidence_cut.labels(evaluator).inc(count)
        for reason, count in processed.without_vector.items():
            telemetry.without_vector.labels(reason).inc(count)
        if self._dead_letters is not None:
            self._unknown_fields.report(processed.adjustments.unknown)

    def _has_too_many_dead_letters(self, records: Sequence[Record], processed: SliceResult) -> bool:
        """Whether the topic of these records was stopped. Raises `TooManyDeadLetters` if the lane reads no other."""
        if self._dead_letters is None:
            return False
        try:
            self._limit.check(records, processed.dead)
        except TooManyDeadLetters as error:
            if self._stop_topic(records[0].topic, error):
                return True
            raise
        return False

    async def _submit_rows(self, event: Any, records: Sequence[Record], processed: SliceResult) -> None:
        last = records[-1]
        at = (last.topic, last.partition)
        block = processed.block
        block.progress.append(self._progress.advance(at, last, processed.newest, self._lag(at)))
        stored = await self._writer.put(block)
        self._slices.finish(self._finish(event, records, processed.dead, stored))

    async def _finish(
        self,
        event: Any,
        records: Sequence[Record],
        dead: Sequence[DeadLetter],
        stored: "asyncio.Future[list[RejectedRow]]",
    ) -> None:
        await self._send(dead)
        rejected = await stored
        if rejected:
            await self._dead_letter_rejected(rejected, records)
        event.ack()

    async def _send(self, letters: Sequence[DeadLetter]) -> None:
        if not letters or self._dead_letters is None:
            return
        await self._dead_letters.send(letters)
        for letter in letters:
            self._telemetry.dead_letters.labels(self._lane, letter.stage, letter.reason).inc()

    async def _dead_letter_rejected(self, rejected: Sequence[RejectedRow], records: Sequence[Record]) -> None:
        """Send the records of rejected rows to the dead letters, once per record."""
        letters = dead_letters_of(rejected, records)
        if self._dead_letters is None or not letters:
            return
        await self._send(letters)
        await self._writer.store(Block(dead_letters=[dead_letter_row(letter, LIVE) for letter in letters]))
