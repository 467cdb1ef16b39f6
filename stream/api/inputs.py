"""Read records of any form as messages: the bytes that a worker would read from Kafka.

Dicts and traces are written as JSON, so that decoding, limits and refusals are those of live traffic.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from decimal import Decimal
from itertools import count
from pathlib import Path
from stat import S_ISCHR, S_ISFIFO, S_ISSOCK
from typing import IO, Any, NamedTuple
from uuid import UUID

import msgspec

from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.evaluators.trace import Trace
from ragtide.stream.ingest.json_lines import check_file, read_file
from ragtide.stream.ingest.records import StoredRecord

_FORMS = "dicts, Trace objects, JSON texts, a path of a JSON lines file, a pandas DataFrame or an Arrow table"
_NO_ITEM = "a record is a dict, a Trace or a JSON text"
_MEMORY = "records"  # the topic of records that are not from a file


class RefusedItem(NamedTuple):
    """An item that cannot be written as JSON, by its number from 1."""

    number: int
    fault: BadRecord


class Item(NamedTuple):
    """A record, or the reason why the item is none; `done` of the source's `total` are read then."""

    record: StoredRecord | RefusedItem
    done: int


class Source(NamedTuple):
    """Records in order. `total` is in bytes for a file, else in records; None: unknown, as of a pipe."""

    name: str
    items: Iterator[Item]
    total: int | None


def open_source(records: object, max_bytes: int) -> Source:
    """Open the records. Raises `ConfigError` for a form that cannot be read, or a file that is not there."""
    if isinstance(records, (str, os.PathLike)):
        return _file(Path(os.fspath(records)), max_bytes)
    if isinstance(records, (Mapping, Trace, bytes)):
        raise ConfigError(f"records: found a single {type(records).__name__}; put it into a list")
    rows: Iterable[object] | None = _rows_of(records)
    if rows is None:
        if not isinstance(records, Iterable):
            raise ConfigError(f"records: found a value of type {type(records).__name__}; give {_FORMS}")
        rows = records
    number_of_rows = getattr(records, "num_rows", None)  # a batch of Arrow has columns as its length
    if not isinstance(number_of_rows, int):
        number_of_rows = len(records) if isinstance(records, Sized) else None
    return Source(_MEMORY, _items(rows), number_of_rows)


def _rows_of(records: Any) -> Iterator[Mapping[str, Any]] | None:
    """Yield the rows of a pandas or Arrow table as dicts; None if it is none. Neither library is imported."""
    if hasattr(records, "iloc") and hasattr(records, "columns"):
        return _frame_rows(records)
    if hasattr(records, "to_batches") and hasattr(records, "schema"):
        of_files = hasattr(records, "count_rows")  # a dataset
        return _batch_rows(records.to_batches(**{"batch_size" if of_files else "max_chunksize": _ROWS}))
    if hasattr(records, "to_pylist") and hasattr(records, "schema"):
        return _batch_rows([records])
    if hasattr(records, "read_next_batch"):
        return _batch_rows(records)
    return None


_ROWS = 1_000  # of a table that are Python objects at a time


def _frame_rows(frame: Any) -> Iterator[Mapping[str, Any]]:
    if not frame.columns.is_unique:
        raise ConfigError("records: two columns of the frame have one name; rename one")
    for at in range(0, len(frame), _ROWS):
        part = frame.iloc[at : at + _ROWS]
        for row in part.astype(object).where(part.notna(), None).to_dict("records"):
            yield _recorded(row)


def _batch_rows(batches: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for batch in batches:
        for row in batch.to_pylist(maps_as_pydicts="strict"):
            yield _recorded(row)


def _recorded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the missing values: a table has a cell for every field."""
    return {name: value for name, value in row.items() if value is not None}


def _file(path: Path, max_bytes: int) -> Source:
    """Open a file, or a pipe: that has neither a size nor a place, and can be read only once."""
    try:
        found = path.stat()
        is_file = not (S_ISFIFO(found.st_mode) or S_ISCHR(found.st_mode) or S_ISSOCK(found.st_mode))
        file = path.open("rb")  # a pipe now, since its writer ends when a reader closes it
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        if str(path).lstrip().startswith(("{", "[")):  # a record, whose texts no error may hold
            raise ConfigError("records: one text is a path; give JSON texts in a list") from None
        raise ConfigError(f"{path}: cannot be read: {reason}; give the path of a JSON lines file") from None
    if not is_file:
        piped = open_stream(file, str(path), max_bytes)
        return piped._replace(items=_closing(file, piped.items))
    with file:
        check_file(file, str(path))

    def items() -> Iterator[Item]:
        with path.open("rb") as file:
            for record in _records(file, str(path), path.name, max_bytes):
                yield Item(record, file.tell())

    return Source(path.name, items(), found.st_size)


def _closing(file: IO[bytes], items: Iterator[Item]) -> Iterator[Item]:
    with file:
        yield from items


def open_stream(file: IO[bytes], name: str, max_bytes: int) -> Source:
    """Read JSON lines from a pipe, such as standard input. `name` is for messages."""
    records = _records(file, name, name, max_bytes)
    return Source(name, (Item(record, done) for done, record in enumerate(records, 1)), None)


def _records(file: IO[bytes], name: str, topic: str, max_bytes: int) -> Iterator[StoredRecord]:
    for number, value in read_file(file, name, max_bytes):
        yield StoredRecord(f"file:{topic}", 0, number, 0, None, value)


def _items(records: Iterable[object]) -> Iterator[Item]:
    for number, record in zip(count(1), records):
        try:
            yield Item(StoredRecord(_MEMORY, 0, number, 0, None, encode(record)), number)
        except BadRecord as fault:
            yield Item(RefusedItem(number, fault), number)


def encode(record: object) -> bytes:
    """Write the record as a message has it. Raises `BadRecord` for a value that JSON cannot hold.

    NaN stays NaN, so that decoding refuses it with its reason, as in a file.
    """
    if isinstance(record, bytes):
        return record
    if isinstance(record, str):
        return record.encode("utf-8", "surrogatepass")
    if isinstance(record, Trace):
        record = msgspec.to_builtins(record)
    if not isinstance(record, Mapping):
        raise BadRecord("not_an_object", f"found a value of type {type(record).__name__}; {_NO_ITEM}")
    try:
        return _encode(record)
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be written") from None
    except (TypeError, ValueError):
        raise _fault_of(record) from None


def _fault_of(record: Mapping[Any, Any]) -> BadRecord:
    """Name the first field that JSON cannot hold; never its value."""
    for name, value in record.items():
        try:
            _encode({name: value})
        except RecursionError:
            return BadRecord("too_deep", "arrays and objects nested too deep to be written", str(name))
        except (TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, _NoJson) else "a reference to itself, or a key that is no text"
            return BadRecord("not_json", f"{name}: found {reason}; JSON has no such value", str(name))
    return BadRecord("not_json", "the record has no form in JSON")


def _encode(record: Mapping[Any, Any]) -> bytes:
    fields = record if isinstance(record, dict) else dict(record)
    return json.dumps(fields, separators=(",", ":"), default=_plain).encode()


class _NoJson(TypeError):
    """A value that JSON cannot hold. The message names its type."""


def _plain(value: Any) -> object:
    """Replace a value that `json` does not know: times, numbers of numpy, structs, other mappings."""
    if isinstance(value, (Decimal, UUID)):
        return float(value) if isinstance(value, Decimal) else str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if (written := _call(value, "isoformat")) is not None:
        return written
    if getattr(getattr(value, "dtype", None), "kind", "") == "M":
        return value.astype("datetime64[us]").tolist()  # nanoseconds would become a whole number
    if (items := _call(value, "tolist")) is not None:
        return items
    raise _NoJson(f"a value of type {type(value).__name__}")


def _call(value: object, method: str) -> object:
    """Call the method if the value has it."""
    found: Callable[[], object] | None = getattr(value, method, None)
    return found() if callable(found) else None
