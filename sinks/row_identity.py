"""Identity of rows, and which version wins: the tables' sorting keys and versions, in Python."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ragtide.sinks.rows import (
    Block,
    DeadLetterRow,
    DirtyRow,
    EmbeddingRow,
    ExplanationRow,
    ProgressRow,
    ScoreRow,
    TextRow,
    TraceRow,
)

TraceRows = TraceRow | TextRow | ScoreRow | ExplanationRow | EmbeddingRow  # of one trace, with tombstones
Row = TraceRows | DeadLetterRow | DirtyRow | ProgressRow

# Table of each type of row, in the order of writing: marks and progress after the rows they speak of.
TABLES: Final[dict[type[Row], str]] = {
    TraceRow: "traces",
    TextRow: "trace_texts",
    ScoreRow: "scores",
    ExplanationRow: "explanations",
    EmbeddingRow: "embeddings",
    DeadLetterRow: "dead_letters",
    DirtyRow: "dirty_windows",
    ProgressRow: "progress",
}


def rows_of(block: Block) -> dict[str, list[Row]]:
    """The block's rows by table, in the order of writing; tables without rows are left out."""
    listed: list[list[Row]] = [
        [*block.traces],
        [*block.texts],
        [*block.scores],
        [*block.explanations],
        [*block.embeddings],
        [*block.dead_letters],
        [*block.dirty],
        [*block.progress],
    ]
    return {table: rows for table, rows in zip(TABLES.values(), listed, strict=True) if rows}


def block_of(rows: Sequence[Row]) -> Block:
    """Make a block of exactly these rows."""
    block = Block()
    for row in rows:
        match row:
            case TraceRow():
                block.traces.append(row)
            case TextRow():
                block.texts.append(row)
            case ScoreRow():
                block.scores.append(row)
            case ExplanationRow():
                block.explanations.append(row)
            case EmbeddingRow():
                block.embeddings.append(row)
            case DeadLetterRow():
                block.dead_letters.append(row)
            case DirtyRow():
                block.dirty.append(row)
            case ProgressRow():
                block.progress.append(row)
    return block


def identity(row: Row) -> tuple[object, ...]:
    """The table's sorting key: of rows with an equal key one stays."""
    match row:
        case TraceRow() | TextRow() | EmbeddingRow():
            return row.run_id, row.app, row.environment, _minute(row.time), row.trace_id
        case ScoreRow() | ExplanationRow():
            return row.run_id, row.app, row.environment, row.evaluator, _minute(row.time), row.trace_id
        case DeadLetterRow():
            return row.run_id, row.topic, row.partition, row.offset, row.time
        case DirtyRow():
            return row.run_id, row.app, row.environment, row.start, row.lane, row.mark_id
        case ProgressRow():
            return row.lane, row.topic, row.partition


def rank(row: Row) -> int:
    """Rank of the row: of one identity the highest rank stays, of equal ranks the last written."""
    match row:
        case TraceRow() | TextRow() | ScoreRow() | ExplanationRow() | EmbeddingRow():
            return row.version
        case DirtyRow():
            return row.done
        case DeadLetterRow() | ProgressRow():
            return 0


def _minute(time: datetime) -> datetime:
    return time.replace(second=0, microsecond=0)
