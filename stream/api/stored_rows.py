"""Rows that were read from a running system, as an Arrow table."""

from dataclasses import dataclass
from typing import Any

from ragtide.stream.api import frames
from ragtide.stream.api.text_table import TextTable, lines_to_html

_SHOWN = 10
_LONGEST_CELL = 60


class CutWarning(UserWarning):
    """There are more rows than the limit of the call."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """At most `limit` rows, the newest first; `is_cut`: there are more."""

    what: str
    table: Any  # pyarrow.Table
    limit: int
    is_cut: bool

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, as in the reference of tables."""
        return tuple(self.table.column_names)

    def to_arrow(self) -> Any:
        """Return the Arrow table. Times are in UTC; a missing value is null."""
        return self.table

    def to_pandas(self) -> Any:
        """Return a DataFrame; raises `ConfigError` if pandas is not installed. Maps are dicts."""
        frames.optional("pandas")
        return self.table.to_pandas(maps_as_pydicts="strict")

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dict per row."""
        rows: list[dict[str, Any]] = self.table.to_pylist(maps_as_pydicts="strict")
        return rows

    def __repr__(self) -> str:
        return f"{self._size()}\n{self._head().to_text()}"

    def _repr_html_(self) -> str:
        return lines_to_html([self._size()]) + self._head().to_html()

    def _size(self) -> str:
        more = f", cut at limit={self.limit:,}: there are more" if self.is_cut else ""
        return f"{self.what}: {len(self):,} rows{more}"

    def _head(self) -> TextTable:
        rows = self.table.slice(0, _SHOWN).to_pylist(maps_as_pydicts="strict")
        return TextTable(self.columns, [[_cell(value) for value in row.values()] for row in rows], texts=())


def read_stream(stream: bytes) -> Any:
    """Read Arrow record batches as a table; no bytes: an empty one. Raises `ConfigError` if pyarrow is missing."""
    pyarrow = frames.optional("pyarrow")
    if not stream:
        return pyarrow.table({})
    with frames.optional("pyarrow.ipc").open_stream(stream) as batches:
        return batches.read_all()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 3]}..."
