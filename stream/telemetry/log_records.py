"""Write log records without texts of Kafka records, whoever logs and at any level.

- Loggers of libraries and plug-ins write from WARNING up, whatever `telemetry.log_level` is. Below that they write for
  who debugs the library: aiokafka's producer each message that it sends, its connection each request (one of those is
  the password), urllib3 each URL with its parameters.
- What they write from WARNING up holds names, numbers and errors. Other values (bytes, objects) stand as their type.
- An exception, as an argument or with its traceback, is described by `ragtide.stream.telemetry.errors`.
"""

import logging
import sys
import threading
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Any, TextIO

from ragtide.evaluators.errors import RagtideError
from ragtide.stream.telemetry.errors import describe, message_of, traceback_of
from ragtide.stream.terminal_text import plain

OURS = ("ragtide",)
# Faust's services log as the module of their subclass.
FAUST = ("ragtide.stream.kafka.app", "ragtide.stream.kafka.consumer_thread", "ragtide.stream.kafka.driver")
LIBRARIES = logging.WARNING  # the least severe level of a library that is written
_ASYNCIO = "asyncio"
_NAMES_AND_NUMBERS = (str, int, float, type(None))
_LINES = "\n"


class Handler(logging.StreamHandler[TextIO]):
    """Writes log records to a stream without texts of Kafka records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop what a library logs below WARNING: its own variable may set the level of its logger."""
        return (record.levelno >= LIBRARIES or _is_ours(record)) and bool(super().filter(record))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a copy that quotes nothing; other handlers get the record as it was."""
        super().emit(_without_values(record))


class _StandardError(Handler):
    """Writes to whatever standard error is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def guard() -> None:
    """Install `Handler` for lines before logging is configured, and hooks that describe uncaught exceptions.

    Hooks that are installed already stay.
    """
    handler = _StandardError(sys.stderr)
    handler.setLevel(LIBRARIES)
    logging.lastResort = handler
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _process_ended
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _thread_ended


def _process_ended(_: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
    sys.stderr.write(f"{plain(traceback_of(error), allowed=_LINES)}\n")


def _thread_ended(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        name = args.thread.name if args.thread is not None else "unknown"
        sys.stderr.write(f"Exception in thread {plain(name)}:\n{plain(traceback_of(args.exc_value), allowed=_LINES)}\n")


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in OURS and record.name not in FAUST


def _without_values(record: logging.LogRecord) -> logging.LogRecord:
    """A copy whose message and traceback quote no record; the traceback is in `exc_text`."""
    shown = logging.makeLogRecord(vars(record))
    ours = _is_ours(record)
    if isinstance(record.args, Mapping):
        shown.args = {name: _shown(value, ours) for name, value in record.args.items()}
    elif record.args:
        shown.args = tuple(_shown(value, ours) for value in record.args)
    if isinstance(record.msg, BaseException):
        shown.msg = describe(record.msg)
    elif not ours:
        shown.msg = _first_line(str(record.msg))
    if record.name == _ASYNCIO:  # it quotes the arguments of callbacks and the results of tasks
        shown.msg, shown.args = str(shown.msg).partition("(")[0].partition("%s")[0].rstrip(), ()
    error = record.exc_info[1] if record.exc_info else None
    shown.exc_info, shown.stack_info = None, None
    shown.exc_text = plain(traceback_of(error), allowed=_LINES) if error is not None else None
    return shown


def _shown(value: object, ours: bool) -> Any:
    """Make an argument of a log record safe to write."""
    if isinstance(value, BaseException):
        return _Text(message_of(value) if isinstance(value, RagtideError) else describe(value))
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, str) and not ours:
        return _first_line(value)
    return value if ours or _holds_names_only(value) else _Text(_kind_of(value))


def _holds_names_only(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(_holds_names_only(part) for pair in value.items() for part in pair)
    if isinstance(value, Collection) and not isinstance(value, str | bytes | bytearray | memoryview):
        return all(map(_holds_names_only, value))
    return isinstance(value, _NAMES_AND_NUMBERS)


class _Text:
    """Replaces an argument, whether it is formatted with %s or %r."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _kind_of(value: object) -> str:
    size = f" of {len(value)}" if isinstance(value, Collection) else ""
    return f"<{type(value).__name__}{size}>"


def _first_line(text: str) -> str:
    """The first line: further ones are a library's traceback, or lists of its data."""
    return text.partition("\n")[0]
