"""Describe exceptions in logs without texts of records.

An exception's message may quote a value: `int("...")`, `json`, and drivers of databases do. A log
holds the type of each exception and where it was raised, and a message only where no record can be in it.
"""

import traceback
from collections.abc import Iterator

from ragtide.evaluators.errors import RagtideError

OMITTED = "(message omitted: it may quote a record)"
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"

# Messages of our own errors are written to quote nothing. Those of the others name types, attributes, modules, files,
# addresses or devices. KeyError, ValueError and all unknown types may quote a value, subclasses of libraries too.
_QUOTES_NOTHING: tuple[type[BaseException], ...] = (
    RagtideError,
    OSError,
    ImportError,
    AttributeError,
    NameError,
    TypeError,
    RuntimeError,
    ArithmeticError,
    IndexError,
    MemoryError,
)
_PACKAGES = {"builtins", "ssl", "socket", "torch", "ragtide"}
_KAFKA = "aiokafka.errors"


def describe(error: BaseException) -> str:
    """The type, and the message if it cannot quote a record."""
    kind = type(error)
    message = message_of(error)
    if message.startswith(f"{kind.__name__}:"):  # as those of Kafka's errors do
        return message
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{name}: {message}" if message else name


def message_of(error: BaseException) -> str:
    """The message, or `OMITTED` if it may quote a record; empty: there is none."""
    if not error.args:
        return ""
    return str(error) if _quotes_nothing(error) else OMITTED


def traceback_of(error: BaseException) -> str:
    """The traceback as Python prints it, with each exception of the chain as `describe`; notes are left out."""
    return "".join(_chain(error, set())).rstrip("\n")


def _chain(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    if error.__cause__ is not None and id(error.__cause__) not in seen:
        yield from _chain(error.__cause__, seen)
        yield _CAUSE
    elif error.__context__ is not None and not error.__suppress_context__ and id(error.__context__) not in seen:
        yield from _chain(error.__context__, seen)
        yield _CONTEXT
    if error.__traceback__ is not None:
        yield "Traceback (most recent call last):\n"
        yield from traceback.format_tb(error.__traceback__)
    yield f"{describe(error)}\n"
    if isinstance(error, BaseExceptionGroup):
        for number, one in enumerate(error.exceptions, start=1):
            if id(one) not in seen:
                yield f"\nException {number} of the group:\n"
                yield from _chain(one, seen)


def _quotes_nothing(error: BaseException) -> bool:
    """Whether the message can quote no record. Kafka's errors have fixed texts, but the base class wraps any error."""
    kind = type(error)
    if kind.__module__ == _KAFKA:
        return kind.__name__ != "KafkaError"
    known = kind.__module__.partition(".")[0] in _PACKAGES
    return isinstance(error, RagtideError) or (known and isinstance(error, _QUOTES_NOTHING))
