"""Logs are one JSON object a line where nobody looks on, and plain at a terminal."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Literal

import pytest

from stream.configuration.sections import TelemetrySettings
from stream.telemetry.logs import _LOUD, _OURS, configure


@pytest.fixture(autouse=True)
def _root_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    known = [root, *(logging.getLogger(name) for name in (*_OURS, *_LOUD, "urllib3"))]
    before, levels = list(root.handlers), [logger.level for logger in known]
    yield
    root.handlers[:] = before
    for logger, level in zip(known, levels, strict=True):
        logger.setLevel(level)


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
def test_plain_at_a_terminal_or_by_choice(log_format: Literal["auto", "text"], out: io.StringIO) -> None:
    configure(TelemetrySettings(log_format=log_format), out)
    logging.getLogger("stream.somewhere").info("hello")
    assert out.getvalue().endswith("INFO stream.somewhere: hello\n")


def test_the_level_is_the_settings() -> None:
    out = io.StringIO()
    configure(TelemetrySettings(log_level="WARNING"), out)
    logging.getLogger("stream.somewhere").info("not this")
    logging.getLogger("aiokafka.consumer").info("nor this")
    assert out.getvalue() == ""


def test_libraries_speak_from_warning_up() -> None:
    out = io.StringIO()
    configure(TelemetrySettings(log_format="text"), out)
    faust = ("stream.kafka.consumer_thread", "stream.kafka.driver")
    for name in ("sentence_transformers.base.model", "aiokafka.consumer", *faust, "some_plugin"):
        logging.getLogger(name).info("not this")
        logging.getLogger(name).warning("%s warns", name)
    logging.getLogger("drift.jobs").info("this")
    assert "not this" not in out.getvalue()
    assert [line.split(": ")[1] for line in out.getvalue().splitlines()] == [
        "sentence_transformers.base.model warns",
        "aiokafka.consumer warns",
        "stream.kafka.consumer_thread warns",
        "stream.kafka.driver warns",
        "some_plugin warns",
        "this",
    ]
