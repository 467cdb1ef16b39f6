"""A sink in memory for tests: it stores and refuses the same rows as ClickHouse."""

import math
import threading
from collections.abc import Mapping, Sequence

from ragtide.evaluators.errors import Refused
from ragtide.sinks.row_identity import TABLES, Row, TraceRows, identity, rank, rows_of
from ragtide.sinks.rows import Block, EmbeddingRow, ScoreRow


class MemorySink:
    """Keeps the newest row of each identity; may be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[str, dict[tuple[object, ...], Row]] = {table: {} for table in TABLES.values()}
        self._closed = False

    def write(self, block: Block) -> None:
        """Write the block; the rows of a table are stored all or none."""
        if self._closed:
            raise RuntimeError("the sink is closed")
        with self._lock:
            for table, rows in rows_of(block).items():
                for row in rows:
                    _check(table, row)
                stored = self._tables[table]
                for row in rows:
                    key = identity(row)
                    before = stored.get(key)
                    if before is None or rank(row) >= rank(before):
                        stored[key] = row

    def rows(self, table: str) -> list[Row]:
        """Rows as a reader sees them: one per identity, without deleted ones."""
        with self._lock:
            return [row for row in self._tables[table].values() if not _deleted(row)]

    def check(self) -> str:
        """Always successful."""
        return "in memory"

    def close(self) -> None:
        """Refuse later writes; stored rows can still be read."""
        self._closed = True


def _deleted(row: Row) -> bool:
    return isinstance(row, TraceRows) and bool(row.is_deleted)


def _check(table: str, row: Row) -> None:
    if not all(map(math.isfinite, _numbers(row))):
        raise Refused(f"{table}: a number is not finite")
    for value in row:
        if not _encodes(value):
            raise Refused(f"{table}: a text is not valid Unicode")


def _numbers(row: Row) -> Sequence[float]:
    """Numbers of the row that its table's constraints check."""
    match row:
        case ScoreRow():
            return [*row.metrics.values(), *row.parts.values()]
        case EmbeddingRow():
            return row.vector
        case _:
            return ()


def _encodes(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, Mapping):
        return all(_encodes(item) for pair in value.items() for item in pair)
    return not isinstance(value, Sequence) or all(map(_encodes, value))
