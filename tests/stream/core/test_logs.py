"""Logs are one JSON object a line where nobody looks on, and plain at a terminal."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from stream.configuration.sections import TelemetrySettings
from stream.telemetry.logs import configure


@pytest.fixture(autouse=True)
def _root_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_json_where_not_a_terminal() -> None:
    out = io.StringIO()
    configure(TelemetrySettings(), out)
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("stream.somewhere").exception("it\nbroke %d times", 3)
    (line,) = out.getvalue().splitlines()
    told = json.loads(line)
    assert told["level"] == "error"
    assert told["logger"] == "stream.somewhere"
    assert told["message"] == "it\nbroke 3 times"
    assert "ValueError: why" in told["traceback"]
    assert told["time"].endswith("Z")


@pytest.mark.parametrize(("log_format", "out"), [("auto", Terminal()), ("text", io.StringIO())])
def test_plain_at_a_terminal_or_by_choice(log_format: str, out: io.StringIO) -> None:
    configure(TelemetrySettings(log_format=log_format), out)  # type: ignore[arg-type]
    logging.getLogger("stream.somewhere").info("hello")
    assert out.getvalue().endswith("INFO stream.somewhere: hello\n")


def test_the_level_is_the_settings() -> None:
    out = io.StringIO()
    configure(TelemetrySettings(log_level="WARNING"), out)
    logging.getLogger("stream.somewhere").info("not this")
    logging.getLogger("aiokafka.consumer").info("nor this")
    assert out.getvalue() == ""
