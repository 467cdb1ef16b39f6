"""Write repeated log lines once and count the others, so that a missing broker does not fill a disk.

aiokafka alone logs up to 150 lines a second while no broker answers. Everything a process logs passes here, whoever
logs it: the first of equal lines is written at once, and each minute one line says how many more there were.
"""

import copy
import logging
import re
import threading
import time
from collections.abc import Callable
from typing import TypeAlias

REPEAT_S = 60.0  # equal lines are counted for so long
_MOST_KINDS = 10  # different lines of one template that a library may write in that time
_MOST_KEPT = 2000  # lines that are remembered; beyond that every line is written
_NUMBER = re.compile(r"\d+")

Key: TypeAlias = tuple[str, int, str]


class _Repeated:
    """A written line and the number of equal ones since."""

    __slots__ = ("count", "kinds", "record", "since")

    def __init__(self, record: logging.LogRecord, since: float) -> None:
        self.record = record
        self.since = since
        self.count = 0
        self.kinds = 0


class RepeatCounter(logging.Handler):
    """Passes records on to `target`; of equal ones within `REPEAT_S` the first, and then a count each `REPEAT_S`.

    Records are equal that have the same logger, level, message and exception. Of a library's template (the message
    without its arguments and numbers) at most ten different lines pass in that time; more are counted together.
    Records of level DEBUG all pass. `ours` are the loggers whose different lines all pass.
    """

    def __init__(
        self, target: logging.Handler, ours: tuple[str, ...] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self.counted = 0  # since the start
        self._target = target
        self._ours = ours
        self._clock = clock
        self._known: dict[Key, _Repeated] = {}
        self._wake = threading.Condition(self.lock)  # the handler's own: Python 3.13 holds it while it emits
        self._closed = False
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record or count it."""
        with self._wake:
            self._pass_or_count(record)

    def _pass_or_count(self, record: logging.LogRecord) -> None:
        now = self._clock()
        self.write_counts(now)
        if record.levelno <= logging.DEBUG or self._closed:
            self._target.handle(record)
            return
        try:
            key = record.name, record.levelno, _text(record)
        except (TypeError, ValueError, KeyError):  # arguments that do not fit the message: the target reports them
            self._target.handle(record)
            return
        before = self._known.get(key) or self._too_many_kinds(record, now)
        if before is not None:
            before.count += 1
            self.counted += 1
            self._begin_to_watch()
            return
        if len(self._known) < _MOST_KEPT:
            self._known[key] = _Repeated(_without_traceback(record), now)
        self._target.handle(record)

    def write_counts(self, now: float) -> float:
        """Write the counts that are due, forget lines that did not repeat; how long until the next is due."""
        while self._known:
            key, repeated = next(iter(self._known.items()))  # they are in the order of their beginnings
            if (left := repeated.since + REPEAT_S - now) > 0:
                return left
            del self._known[key]
            if repeated.count:
                self._write_count(repeated, now)
                repeated.count = repeated.kinds = 0
                repeated.since = now
                self._known[key] = repeated
        return REPEAT_S

    def close(self) -> None:
        """Write what was counted so far, and pass everything from now on."""
        with self._wake:
            if not self._closed:
                self._closed = True
                now = self._clock()
                for repeated in self._known.values():
                    if repeated.count:
                        self._write_count(repeated, now)
                self._known.clear()
                self._wake.notify_all()
        super().close()

    def flush(self) -> None:
        """Flush the target."""
        self._target.flush()

    def _too_many_kinds(self, record: logging.LogRecord, now: float) -> _Repeated | None:
        """The counter of a library's template that has used up its different lines."""
        if record.name.partition(".")[0] in self._ours:
            return None
        key = f"{record.name} template", record.levelno, _NUMBER.sub("#", str(record.msg))
        template = self._known.get(key)
        if template is None:
            if len(self._known) >= _MOST_KEPT:
                return None
            template = self._known[key] = _Repeated(_without_traceback(record), now)
        template.kinds += 1
        return template if template.kinds > _MOST_KINDS else None

    def _write_count(self, repeated: _Repeated, now: float) -> None:
        """Write a count. Arguments stay arguments, so that formatters can still mask them."""
        record = copy.copy(repeated.record)
        like = " like it" if repeated.kinds else ""
        seconds = max(1, round(now - repeated.since))
        record.msg = f"{record.msg} ({repeated.count} more{like} in the last {seconds} s)"
        record.created = time.time()
        record.msecs = record.created % 1 * 1000
        self._target.handle(record)

    def _begin_to_watch(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="log repeats", daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        """Write counts also after the last line of a burst."""
        with self._wake:
            while not self._closed:
                self._wake.wait(self.write_counts(self._clock()))


def count_repeats() -> int:
    """Number of lines of this process that were counted instead of written."""
    return sum(handler.counted for handler in logging.getLogger().handlers if isinstance(handler, RepeatCounter))


def _text(record: logging.LogRecord) -> str:
    """The message, with type and message of its exception."""
    error = record.exc_info[1] if record.exc_info else None
    return record.getMessage() if error is None else f"{record.getMessage()}\n{type(error).__name__}: {error}"


def _without_traceback(record: logging.LogRecord) -> logging.LogRecord:
    """Drop the traceback, which would keep its frames in memory."""
    copied = copy.copy(record)
    copied.exc_info = copied.exc_text = copied.stack_info = None
    return copied
