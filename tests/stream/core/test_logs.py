"""Logs are one JSON object a line where nobody looks on, and plain at a terminal."""

import asyncio
import gc
import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Literal

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaError

from ragtide.evaluators.errors import Transient
from ragtide.stream.settings.sections import TelemetrySettings
from ragtide.stream.telemetry.log_records import FAUST, OURS
from ragtide.stream.telemetry.logs import configure


@pytest.fixture(autouse=True)
def _root_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    known = [root, *(logging.getLogger(name) for name in (*OURS, *FAUST, "urllib3"))]
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
        raise RuntimeError("why")
    except RuntimeError:
        logging.getLogger("ragtide.stream.somewhere").exception("it\nbroke %d times", 3)
    (line,) = out.getvalue().splitlines()
    told = json.loads(line)
    assert told["level"] == "error"
    assert told["logger"] == "ragtide.stream.somewhere"
    assert told["message"] == "it\nbroke 3 times"
    assert "RuntimeError: why" in told["traceback"]
    assert told["time"].endswith("Z")


@pytest.mark.parametrize(("log_format", "out"), [("auto", Terminal()), ("text", io.StringIO())])
def test_plain_at_a_terminal_or_by_choice(log_format: Literal["auto", "text"], out: io.StringIO) -> None:
    configure(TelemetrySettings(log_format=log_format), out)
    logging.getLogger("ragtide.stream.somewhere").info("hello")
    assert out.getvalue().endswith("INFO ragtide.stream.somewhere: hello\n")


def test_the_level_is_the_settings() -> None:
    out = io.StringIO()
    configure(TelemetrySettings(log_level="WARNING"), out)
    logging.getLogger("ragtide.stream.somewhere").info("not this")
    logging.getLogger("aiokafka.consumer").info("nor this")
    assert out.getvalue() == ""


def test_libraries_speak_from_warning_up() -> None:
    out = io.StringIO()
    configure(TelemetrySettings(log_format="text"), out)
    faust = ("ragtide.stream.kafka.consumer_thread", "ragtide.stream.kafka.driver")
    for name in ("sentence_transformers.base.model", "aiokafka.consumer", *faust, "some_plugin"):
        logging.getLogger(name).info("not this")
        logging.getLogger(name).warning("%s warns", name)
    logging.getLogger("ragtide.drift.jobs").info("this")
    assert "not this" not in out.getvalue()
    assert [line.split(": ")[1] for line in out.getvalue().splitlines()] == [
        "sentence_transformers.base.model warns",
        "aiokafka.consumer warns",
        "ragtide.stream.kafka.consumer_thread warns",
        "ragtide.stream.kafka.driver warns",
        "some_plugin warns",
        "this",
    ]


SECRET = "what a user wrote"


def written(level: Literal["DEBUG", "INFO"] = "DEBUG", log_format: Literal["json", "text"] = "json") -> io.StringIO:
    out = io.StringIO()
    configure(TelemetrySettings(log_level=level, log_format=log_format), out)
    return out


@pytest.mark.parametrize(
    "name", ["aiokafka.producer.producer", "faust", "mode", "urllib3", "httpx", "a_plugin", *FAUST]
)
def test_libraries_speak_from_warning_up_at_debug_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = written()
    logger = logging.getLogger(name)
    monkeypatch.setattr(logger, "level", logging.DEBUG)  # as a variable of the library's own would have it
    logger.debug("Sending (key=%r value=%r)", b"k", SECRET.encode())
    logger.info("%s", SECRET)
    assert out.getvalue() == ""
    logging.getLogger("ragtide.stream.somewhere").debug("ours")
    assert json.loads(out.getvalue())["message"] == "ours"


class Message:
    def __repr__(self) -> str:
        return SECRET


def test_values_of_libraries_stand_as_their_type() -> None:
    out = written()
    at = TopicPartition("rag.traces", 3)
    log = logging.getLogger("aiokafka.consumer")
    log.warning("%s %r %s %d %s", SECRET.encode(), [Message()], at, 7, {"topic": ("a", 1)})
    log.warning("%(value)r at %(offset)d", {"value": Message(), "offset": 9})
    log.error("first line\n" + SECRET)
    log.error("%s", f"Traceback\n{SECRET}")
    assert [json.loads(line)["message"] for line in out.getvalue().splitlines()] == [
        f"<bytes of 17> <list of 1> {at} 7 {{'topic': ('a', 1)}}",
        "<Message> at 9",
        "first line",
        "Traceback",
    ]


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except type(error) as caught:
        return caught


ERRORS = [
    ValueError(SECRET),
    KeyError(SECRET),
    UnicodeDecodeError("utf-8", SECRET.encode() + b"\xff", 17, 18, "invalid start byte"),
    json.JSONDecodeError("x", SECRET, 0),
    Exception(SECRET),
    KafkaError(SECRET),
    ExceptionGroup("several", [ValueError(SECRET), RuntimeError("no text")]),
    raised(RuntimeError("no text"), ValueError(SECRET)),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("logger", ["ragtide.stream.somewhere", "faust.agents", "asyncio"])
@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_exception_is_logged_with_a_value(
    error: BaseException, logger: str, log_format: Literal["json", "text"]
) -> None:
    out = written(log_format=log_format)
    log = logging.getLogger(logger)
    log.error("crashed: %r, %s", error, error, exc_info=raised(error))
    log.error(error)
    log.error("crashed of %(error)r", {"error": error})
    assert SECRET not in out.getvalue()
    assert "Traceback (most recent call last)" in out.getvalue()
    assert type(error).__name__ in out.getvalue()


def test_errors_that_quote_nothing_keep_their_message() -> None:
    out = written(log_format="text")
    log = logging.getLogger("ragtide.stream.somewhere")
    log.warning("%s", Transient("ClickHouse does not answer"))
    log.warning("%s", FileNotFoundError(2, "no such file", "ragtide.toml"))
    log.warning("%r", KafkaConnectionError("no broker"))
    assert [line.partition("somewhere: ")[2] for line in out.getvalue().splitlines()] == [
        "ClickHouse does not answer",
        "FileNotFoundError: [Errno 2] no such file: 'ragtide.toml'",
        "KafkaConnectionError: no broker",
    ]


def test_what_asyncio_logs_of_callbacks_and_tasks_quotes_no_arguments() -> None:
    out = written()

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def fails(value: str) -> None:
            raise ValueError(value)

        loop.call_soon(fails, SECRET)
        task = asyncio.ensure_future(asyncio.to_thread(fails, SECRET))
        while not task.done():
            await asyncio.sleep(0)
        del task

    asyncio.run(main())
    gc.collect()
    messages = [json.loads(line)["message"] for line in out.getvalue().splitlines()]
    assert sorted(message.partition(" test_")[0] for message in messages) == [
        "Exception in callback",
        "Task exception was never retrieved",
    ]
    assert SECRET[:10] not in out.getvalue()


def test_a_thread_that_ends_by_an_exception_quotes_no_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    written()
    thread = threading.Thread(target=int, args=(SECRET,), name="a thread")
    thread.start()
    thread.join()
    error = capsys.readouterr().err
    assert "Exception in thread a thread" in error
    assert "ValueError" in error
    assert SECRET not in error


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_name_forges_no_line_and_steers_no_terminal(log_format: Literal["json", "text"]) -> None:
    out = written(log_format=log_format)
    name = "a\n2026-01-01 ERROR forged\x1b[2J\u202e\u2066\x85\u2028\u200b\U000e0001"
    logging.getLogger("ragtide.stream.somewhere").info("app %s", name)
    (line,) = out.getvalue().split("\n")[:-1]
    assert line.isprintable()
    if log_format == "json":
        assert json.loads(line)["message"] == f"app {name}"
