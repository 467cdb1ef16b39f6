"""The sink of ClickHouse."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.migrate import missing
from ragtide.sinks.row_identity import Row, TraceRows, rows_of
from ragtide.sinks.rows import Block, TextRow

# ClickHouse refuses an insert that spans more than 100 partitions, and these tables have one per day.
_MAX_DAYS = 90
# Texts of one insert: it is in memory here, on its way, and at the server.
_MAX_TEXT_CHARACTERS = 64 << 20


class ClickHouseSink:
    """Stores blocks as `ragtide.sinks.protocol.Sink` demands, from any thread. Closes its database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, block: Block) -> None:
        """Write one acknowledged insert per table, or several for many days or bytes; marks and progress last."""
        for table, rows in rows_of(block).items():
            for part in _inserts(rows):
                self._database.insert(table, part)

    def check(self) -> str:
        """The server's version and address; ConfigError if the tables are not this version's."""
        version = self._database.version()
        where = f"{self._database.settings.url}, database {self._database.name}"
        if lacking := missing(self._database):
            raise ConfigError(f"{where} lacks {', '.join(lacking)}: run `ragtide migrate`")
        return f"ClickHouse {version} at {where}"

    def close(self) -> None:
        """Release the connections; writing afterwards is an error."""
        self._database.close()


def _inserts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Split the rows into parts that the server accepts; nearly always one."""
    for days in _by_days(rows):
        yield from _by_size(days)


def _by_days(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    if len({_day(row) for row in rows}) <= _MAX_DAYS:
        yield rows
        return
    part: list[Row] = []
    for number, (_, of_day) in enumerate(groupby(sorted(rows, key=_day), key=_day), start=1):
        part += of_day
        if number % _MAX_DAYS == 0:
            yield part
            part = []
    if part:
        yield part


def _day(row: Row) -> int:
    return row.time.toordinal() if isinstance(row, TraceRows) else 0


def _by_size(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    start, size = 0, 0
    for index, row in enumerate(rows):
        length = _characters(row) if isinstance(row, TextRow) else 0
        if size and size + length > _MAX_TEXT_CHARACTERS:
            yield rows[start:index]
            start, size = index, 0
        size += length
    yield rows[start:]


def _characters(row: TextRow) -> int:
    texts = (
        row.question or "",
        row.answer or "",
        row.error_message,
        row.attributes,
        row.rest,
        *row.chunks,
        *row.expected,
    )
    return sum(map(len, texts))
