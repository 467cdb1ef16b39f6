"""Read a file of traces, one JSON object per line, as records of topic `file:NAME` with the line number as offset."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import BinaryIO

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.ingest.json_lines import read_lines, refuse_other_formats
from ragtide.stream.ingest.records import Record, StoredRecord
from ragtide.stream.replay.loop import RecordBatch
from ragtide.stream.replay.runs import Position


class FileSource:
    """Every line that is not blank, in order. A later line wins over an earlier one; live rows win over a file."""

    def __init__(self, path: Path, *, batch_records: int, batch_bytes: int, max_line_bytes: int) -> None:
        self._path = path
        self._records = batch_records
        self._bytes = batch_bytes
        self._max_line = max_line_bytes
        self.topic = f"file:{path.name}"
        self.description = f"file {path.name}"
        self.identity = f"{self.description} sha256:{_digest(path)}"

    def rewind(self, position: Position) -> Position:
        """The position at the first line."""
        return {}

    async def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
        """Yield batches from `position` to the end; `done` and `total` count bytes."""
        at = position.get("file", {"line": 0, "byte": 0})
        total = self._path.stat().st_size
        line, byte = at["line"], at["byte"]
        with self._path.open("rb") as file:
            file.seek(byte)
            while True:
                records, line = await asyncio.to_thread(self._read_batch, file, line)
                byte = file.tell()
                yield RecordBatch(records, {"file": {"line": line, "byte": byte}}, byte, total)
                if byte >= total:
                    return

    def _read_batch(self, file: BinaryIO, line: int) -> tuple[list[Record], int]:
        records: list[Record] = []
        size = 0
        for number, value in read_lines(file, self._max_line, after=line):
            line = number
            size += len(value)
            records.append(StoredRecord(self.topic, 0, number, 0, None, value))
            if len(records) >= self._records or size >= self._bytes:
                break
        return records, line


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            refuse_other_formats(file.peek(1), str(path))
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or type(error).__name__}") from None
