"""How a process logs: one JSON object a line where nobody looks on, plain text at a terminal."""

import json
import logging
import sys
import time
from typing import TextIO

from stream.configuration.sections import TelemetrySettings

_OURS = ("evaluators", "sinks", "drift", "dashboards", "stream")
# Faust's services log as the module of their subclass.
_LOUD = ("stream.kafka.app", "stream.kafka.consumer_thread", "stream.kafka.driver")


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
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure(settings: TelemetrySettings, stream: TextIO | None = None) -> None:
    """Send this process's log to `stream` (standard error) and nowhere else; libraries speak from WARNING up."""
    out = stream or sys.stderr
    plain = settings.log_format == "text" or (settings.log_format == "auto" and out.isatty())
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s") if plain else JsonFormatter()
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    ours = logging.getLevelNamesMapping()[settings.log_level]
    theirs = ours if ours == logging.DEBUG else max(ours, logging.WARNING)
    root.setLevel(theirs)
    for names, level in ((_OURS, ours), (_LOUD, theirs)):
        for name in names:
            logging.getLogger(name).setLevel(level)
    # At DEBUG it writes every request, and one of them is the password.
    logging.getLogger("aiokafka.conn").setLevel(max(theirs, logging.INFO))
    if ours != logging.DEBUG:
        logging.getLogger("urllib3").setLevel(logging.ERROR)  # whoever called it says what went wrong
