"""Join the batches of a source, also of several partitions, so that many traces are evaluated together."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ragtide.stream.ingest.records import Record
from ragtide.stream.replay.loop import RecordBatch, ReplaySource
from ragtide.stream.replay.runs import Position
from ragtide.stream.worker.rejected_rows import known_versions


class BatchJoiner:
    """A source whose batches have up to `most_records` records of up to `most_bytes`, or are those of the inner one.

    Rows identify their records by the version only, so no batch has two records with one version.
    """

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
        versions: set[int] = set()
        last: RecordBatch | None = None
        async with aclosing(self._source.read(position)) as batches:
            async for batch in batches:
                more_bytes = sum(len(record.value or b"") for record in batch.records)
                is_full = len(records) + len(batch.records) > self._records or size_bytes + more_bytes > self._bytes
                more_versions = {version for version, _ in known_versions(batch.records)}
                if records and last is not None and (is_full or versions & more_versions):
                    yield last._replace(records=records)
                    records, size_bytes, versions = [], 0, set()
                records.extend(batch.records)
                size_bytes += more_bytes
                versions |= more_versions
                last = batch
        if last is not None:
            yield last._replace(records=records)
