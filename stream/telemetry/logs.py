"""Logging of a process: one JSON object per line, or plain text at a terminal."""

import logging
import sys
import time
from typing import TextIO

from ragtide.stream.settings.sections import TelemetrySettings
from ragtide.stream.telemetry.log_records import FAUST, LIBRARIES, OURS, Handler, guard
from ragtide.stream.telemetry.repeats import RepeatCounter
from ragtide.stream.terminal_text import plain, plain_json


class JsonFormatter(logging.Formatter):
    """time (RFC 3339, UTC), level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_text:
            line["traceback"] = record.exc_text
        return plain_json(line)


class TextFormatter(logging.Formatter):
    """Time, level, logger and message on one line, and the traceback below it where there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Escape line breaks and control characters: names in a message are untrusted."""
        return plain(super().formatMessage(record))


def configure(settings: TelemetrySettings, stream: TextIO | None = None) -> None:
    """Send this process's log to `stream` (standard error) and nowhere else; libraries write from WARNING up."""
    out = stream or sys.stderr
    as_text = settings.log_format == "text" or (settings.log_format == "auto" and out.isatty())
    handler = Handler(out)
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [RepeatCounter(handler, OURS)]
    ours = logging.getLevelNamesMapping()[settings.log_level]
    theirs = max(ours, LIBRARIES)
    root.setLevel(theirs)
    for names, level in ((OURS, ours), (FAUST, theirs)):
        for name in names:
            logging.getLogger(name).setLevel(level)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # its callers report errors
    guard()
