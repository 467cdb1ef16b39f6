"""Bisect a block that the sink refuses, until the rows that it never accepts are isolated."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ragtide.evaluators.errors import Refused
from ragtide.sinks.protocol import Sink
from ragtide.sinks.row_identity import TABLES, Row, block_of, rows_of
from ragtide.sinks.rows import Block, DirtyRow, ProgressRow


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that was not stored, and the sink's reason, which quotes no content."""

    table: str
    row: Row
    reason: str


def write_or_reject(sink: Sink, block: Block) -> list[RejectedRow]:
    """Write the block and return the rejected rows; all others are durable, marks and progress last.

    Raises Transient as `sink.write` does: write the same block again.
    """
    try:
        sink.write(block)
    except Refused:
        rows: list[Row] = [row for table in rows_of(block).values() for row in table]
        data: list[Row] = [row for row in rows if not isinstance(row, DirtyRow | ProgressRow)]
        marks: list[Row] = [row for row in rows if isinstance(row, DirtyRow | ProgressRow)]
        return [rejected for part in [*_by_day(data), marks] for rejected in _bisect(sink, part)]
    return []


def _by_day(rows: Sequence[Row]) -> list[list[Row]]:
    """Group rows by table and day: a sink may refuse an insert that spans too many days."""
    days: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        time = None if isinstance(row, DirtyRow | ProgressRow) else row.time
        days[TABLES[type(row)], time.toordinal() if time else 0].append(row)
    return list(days.values())


def _bisect(sink: Sink, rows: Sequence[Row]) -> list[RejectedRow]:
    if not rows:
        return []
    try:
        sink.write(block_of(rows))
    except Refused as refused:
        if len(rows) == 1:
            return [RejectedRow(TABLES[type(rows[0])], rows[0], str(refused))]
        half = len(rows) // 2
        return _bisect(sink, rows[:half]) + _bisect(sink, rows[half:])
    return []
