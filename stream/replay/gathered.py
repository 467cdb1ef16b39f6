"""Join the batches of a source, also of several partitions, so that many traces are evaluated together."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ragtide.stream.ingest.records import Record
from ragtide.stream.replay.loop import RecordBatch, ReplaySource
from ragtide.stream.replay.runs import Position


class GatheredSource:
    """A source whose batches have up to `most_records` records of up to `most_bytes` together, or one of the inner."""

    def __init__(self, source: ReplaySource, most_records: int, most_bytes: int) -> None:
        self._source = source
        self._records, self._bytes = most_records, most_bytes
        self.description, self.identity = source.description, source.identity

    def rewind(self, position: Position) -> Position:
        """See `ReplaySource.rewind`."""
        return self._source.rewind(position)

    async def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
        """Yield joined batches, each with the position after its last record."""
        records: list[Record] = []
        size_bytes = 0
        last: RecordBatch | None = None
        async with aclosing(self._source.read(position)) as batches:
            async for batch in batches:
                more_bytes = sum(len(record.value or b"") for record in batch.records)
                is_full = len(records) + len(batch.records) > self._records or size_bytes + more_bytes > self._bytes
                if records and last is not None and is_full:
                    yield last._replace(records=records)
                    records, size_bytes = [], 0
                records.extend(batch.records)
                size_bytes += more_bytes
                last = batch
        if last is not None:
            yield last._replace(records=records)
