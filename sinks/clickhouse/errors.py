"""Classify errors of ClickHouse by what the caller must do: retry, reject the row, or stop.

Codes are the server's (src/Common/ErrorCodes.cpp). A code that is in no table here is a bug of ours and is raised as
the driver gave it.
"""

import struct

from clickhouse_connect.driver.exceptions import ClickHouseError, DataError, Error, OperationalError

from ragtide.evaluators.errors import ConfigError, RagtideError, Refused, Transient

# The server is busy, full, read-only for a while, or lost a peer.
_TRANSIENT = {
    **{3: "UNEXPECTED_END_OF_FILE", 32: "ATTEMPT_TO_READ_AFTER_EOF", 74: "CANNOT_READ_FROM_FILE_DESCRIPTOR"},
    **{75: "CANNOT_WRITE_TO_FILE_DESCRIPTOR", 76: "CANNOT_OPEN_FILE", 159: "TIMEOUT_EXCEEDED", 160: "TOO_SLOW"},
    **{158: "TOO_MANY_ROWS", 307: "TOO_MANY_BYTES", 396: "TOO_MANY_ROWS_OR_BYTES"},
    **{77: "CANNOT_CLOSE_FILE", 88: "CANNOT_TRUNCATE_FILE", 107: "FILE_DOESNT_EXIST", 172: "CANNOT_CREATE_DIRECTORY"},
    **{173: "CANNOT_ALLOCATE_MEMORY", 204: "CANNOT_FSYNC", 214: "CANNOT_STATVFS"},
    **{202: "TOO_MANY_SIMULTANEOUS_QUERIES", 203: "NO_FREE_CONNECTION", 209: "SOCKET_TIMEOUT", 210: "NETWORK_ERROR"},
    **{218: "TABLE_IS_DROPPED", 225: "NO_ZOOKEEPER", 236: "ABORTED", 241: "MEMORY_LIMIT_EXCEEDED"},
    **{242: "TABLE_IS_READ_ONLY", 243: "NOT_ENOUGH_SPACE", 252: "TOO_MANY_PARTS", 279: "ALL_CONNECTION_TRIES_FAILED"},
    **{285: "TOO_FEW_LIVE_REPLICAS", 286: "UNSATISFIED_QUORUM", 319: "UNKNOWN_STATUS_OF_INSERT", 394: "CANCELLED"},
    **{425: "SYSTEM_ERROR", 439: "CANNOT_SCHEDULE_TASK", 473: "DEADLOCK_AVOIDED", 517: "CANNOT_ASSIGN_ALTER"},
    **{529: "NOT_A_LEADER", 574: "DISTRIBUTED_TOO_MANY_PENDING_BYTES", 745: "SERVER_OVERLOADED", 999: "KEEPER"},
}
# The content can never be stored.
_REFUSED = {
    **{6: "CANNOT_PARSE_TEXT", 25: "CANNOT_PARSE_ESCAPE_SEQUENCE", 26: "CANNOT_PARSE_QUOTED_STRING"},
    **{27: "CANNOT_PARSE_INPUT_ASSERTION_FAILED", 33: "CANNOT_READ_ALL_DATA", 38: "CANNOT_PARSE_DATE"},
    **{41: "CANNOT_PARSE_DATETIME", 53: "TYPE_MISMATCH", 69: "ARGUMENT_OUT_OF_BOUND", 70: "CANNOT_CONVERT_TYPE"},
    **{72: "CANNOT_PARSE_NUMBER", 117: "INCORRECT_DATA", 128: "TOO_LARGE_ARRAY_SIZE", 131: "TOO_LARGE_STRING_SIZE"},
    **{190: "SIZES_OF_ARRAYS_DONT_MATCH", 261: "UNKNOWN_BLOCK_INFO_FIELD", 321: "VALUE_IS_OUT_OF_RANGE"},
    **{349: "CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN", 407: "DECIMAL_OVERFLOW", 469: "VIOLATED_CONSTRAINT"},
    **{691: "UNKNOWN_ELEMENT_OF_ENUM"},
}
_MIGRATE = "run `ragtide migrate`"
_CONFIG = {
    16: f"a column is missing: {_MIGRATE}",
    60: f"a table is missing: {_MIGRATE}",
    81: f"the database does not exist: {_MIGRATE}, or correct clickhouse.database",
    115: "the server does not know one of our settings: it is too old",
    164: "the user may only read: correct clickhouse.user",
    192: "the user is unknown: correct clickhouse.user",
    193: "the password is wrong: correct clickhouse.password",
    291: "the user may not use this database: correct clickhouse.user",
    497: "the user lacks a grant: correct clickhouse.user",
    516: "user or password is wrong: correct clickhouse.user and clickhouse.password",
}
_NOT_GRANTED = 497
_TOO_MANY_PARTS = 252
_TOO_MUCH = (158, 159, 160, 209, 241, 307, 396)  # of rows, of time, of memory, of bytes
_STD_EXCEPTION = 1001  # anything; of a file system it is the disk

# What the driver lets through when a value does not fit its column.
UNSUITABLE = (DataError, TypeError, ValueError, OverflowError, AttributeError, struct.error)


class NotGranted(ConfigError):
    """The user lacks a right that the statement needs."""


class TooMuch(Transient):
    """The statement exceeded its limit of time, memory, rows or bytes: a smaller one may succeed."""


# What a statement of ours may fail with while the server works; another statement may succeed.
STATEMENT_FAILED: tuple[type[Exception], ...] = (TooMuch, Refused, ClickHouseError)


def describe_failure(error: Exception) -> str:
    """Say why a statement failed, without quoting it."""
    if isinstance(error, RagtideError):
        return str(error)
    return f"ClickHouse refuses the statement (code {getattr(error, 'code', None)})"


def classify_error(error: ClickHouseError, url: str) -> RagtideError | None:
    """Classify the error, without quoting stored data; None for a bug."""
    code = error.code if isinstance(error, Error) else None
    if code is None:
        if isinstance(error, OperationalError):
            silent = TooMuch if _cause(error) == "ReadTimeoutError" else Transient
            return silent(f"ClickHouse at {url} (clickhouse.url) does not answer ({_cause(error)}): is it running?")
        status = str(error)
        if "HTTP status 5" in status or "HTTP status 429" in status:
            return Transient(f"a proxy before ClickHouse at {url} answers with an error")
        if "HTTP status 413" in status:
            return Refused("the insert is larger than the server accepts")
        if "HTTP status" in status:
            return ConfigError(f"the server at {url} is not ClickHouse: correct clickhouse.url")
        return None
    if code in _CONFIG:
        kind = NotGranted if code == _NOT_GRANTED else ConfigError
        return kind(f"ClickHouse at {url}: {_CONFIG[code]} (its words: {_first_line(error)})")
    if code == _TOO_MANY_PARTS and "Too many partitions" in str(error):
        return Refused(f"one insert spans too many partitions (code {code}): split it by day")
    if code == _STD_EXCEPTION and "filesystem error" in str(error):
        return Transient(f"ClickHouse at {url} cannot use its disk at the moment (code {code})")
    if code in _TRANSIENT:
        busy = TooMuch if code in _TOO_MUCH else Transient
        return busy(f"ClickHouse at {url} cannot at the moment: {_TRANSIENT[code]} (code {code})")
    if code in _REFUSED:
        return Refused(f"ClickHouse refuses the content: {_REFUSED[code]} (code {code})")
    return None


def _cause(error: Exception) -> str:
    cause = error.__cause__ or error
    reason = getattr(cause, "reason", None) or cause
    return type(reason).__name__


def _first_line(error: Exception) -> str:
    text = str(error).partition("DB::Exception: ")[2] or str(error)
    return text.splitlines()[0].partition(" (for url")[0][:200]
