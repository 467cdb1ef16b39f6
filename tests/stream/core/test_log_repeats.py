"""Equal log lines are written once and then counted; different ones all stand."""

import asyncio
import collections
import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.local.topics import create_topics
from ragtide.stream.settings.sections import TelemetrySettings
from ragtide.stream.telemetry import repeats
from ragtide.stream.telemetry.logs import configure
from ragtide.stream.telemetry.repeats import REPEAT_S, RepeatCounter
from tests.infra import telemetry
from tests.infra.fresh_database import reached
from tests.infra.kafka_node import KafkaNode


class Written(logging.Handler):
    """What reaches the log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.records: list[logging.LogRecord] = []
        self.more = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.records.append(record)
        if "more" in self.lines[-1]:
            self.more.set()


class Scene:
    def __init__(self) -> None:
        self.now = 1000.0
        self.out = Written()
        self.counter = RepeatCounter(self.out, ("ragtide",), lambda: self.now)

    def log(
        self, name: str, message: str, *arguments: object, level: int = logging.ERROR, error: Exception | None = None
    ) -> None:
        told = (type(error), error, None) if error else None
        self.counter.handle(logging.LogRecord(name, level, __file__, 1, message, arguments, told))


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.counter.close()


def test_it_has_a_lock_as_every_handler(scene: Scene) -> None:
    """From Python 3.13 on `logging` holds the handler's lock while it emits, and does not ask whether there is one."""
    assert scene.counter.lock is not None
    with scene.counter.lock:
        scene.counter.emit(logging.LogRecord("stream", logging.INFO, __file__, 1, "begun", (), None))
    assert scene.out.lines == ["begun"]


def test_the_first_is_written_and_the_others_are_counted(scene: Scene) -> None:
    for _ in range(881):
        scene.log("aiokafka", "no node %d", 1)
        scene.now += 0.01
    assert scene.out.lines == ["no node 1"]
    scene.now += REPEAT_S
    scene.counter.write_counts(scene.now)
    assert scene.out.lines[1:] == ["no node 1 (880 more in the last 69 s)"]
    scene.log("aiokafka", "no node %d", 1)
    assert len(scene.out.lines) == 2, "a flood that goes on is one line a minute"
    scene.now += REPEAT_S
    scene.counter.write_counts(scene.now)
    assert scene.out.lines[2:] == ["no node 1 (1 more in the last 60 s)"]
    scene.now += REPEAT_S
    scene.log("aiokafka", "no node %d", 1)
    assert scene.out.lines[3:] == ["no node 1"], "after a quiet minute it is news again"
    assert scene.counter.counted == 881


def test_different_lines_all_stand(scene: Scene) -> None:
    different = [
        ("aiokafka", "no node %d", 1),
        ("aiokafka", "no node %d", 2),
        ("aiokafka.consumer", "no node %d", 1),
        ("ragtide.stream.worker", "lane %s: no broker answers", "fast"),
        ("ragtide.stream.worker", "lane %s: no broker answers", "model"),
    ]
    for _ in range(3):
        for name, message, argument in different:
            scene.log(name, message, argument)
    assert scene.out.lines == [message % argument for _, message, argument in different]
    scene.log("aiokafka", "no node %d", 1, level=logging.WARNING)
    scene.log("aiokafka", "no node %d", 1, error=OSError("refused"))
    scene.log("aiokafka", "no node %d", 1, error=OSError("timed out"))
    assert len(scene.out.lines) == len(different) + 3


def test_of_a_librarys_template_ten_different_lines_stand_and_of_ours_all(scene: Scene) -> None:
    for number in range(50):
        scene.log("aiokafka", "correlation %d", number)
        scene.log("mode.services", f"task {number} is late")  # an f-string: its template has the number
        scene.log("ragtide.stream.worker", "slice %d was set aside", number)
    counted = collections.Counter(line.partition(" ")[0] for line in scene.out.lines)
    assert counted == {"correlation": 10, "task": 10, "slice": 50}
    scene.counter.close()
    assert sorted(scene.out.lines[70:]) == [
        "correlation 0 (40 more like it in the last 1 s)",
        "task 0 is late (40 more like it in the last 1 s)",
    ]


def test_debug_lines_and_wrong_arguments_pass(scene: Scene) -> None:
    for _ in range(3):
        scene.log("aiokafka", "asked", level=logging.DEBUG)
    assert scene.out.lines == ["asked"] * 3
    raised = logging.raiseExceptions
    logging.raiseExceptions = False
    try:
        with pytest.raises(TypeError):  # by the test's own handler, as by any
            scene.log("aiokafka", "no %d", "number")
    finally:
        logging.raiseExceptions = raised


def test_a_count_keeps_the_arguments_apart_and_holds_no_frames(scene: Scene) -> None:
    """What shortens a library's arguments finds them in the count too."""
    for _ in range(2):
        scene.log("aiokafka", "record %r", b"text", error=ValueError("why"))
    scene.counter.close()
    first, count = scene.out.records
    assert count.args == first.args == (b"text",)
    assert count.msg == "record %r (1 more in the last 1 s)"
    assert count.exc_info is None


def test_the_count_comes_though_nothing_is_logged_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "REPEAT_S", 0.05)
    out, seconds = Written(), [0.0]
    counter = RepeatCounter(out, clock=lambda: seconds[0])
    for _ in range(3):
        counter.handle(logging.LogRecord("aiokafka", logging.ERROR, __file__, 1, "no node", (), None))
    seconds[0] = 0.1
    assert out.more.wait(30)
    counter.close()
    assert out.lines == ["no node", "no node (2 more in the last 1 s)"]


def test_more_lines_than_are_remembered_are_all_written(scene: Scene) -> None:
    for number in range(3 * repeats._MOST_KEPT):
        scene.log("ragtide.stream.worker", f"{number}")
    assert len(scene.out.lines) == 3 * repeats._MOST_KEPT
    assert len(scene.counter._known) == repeats._MOST_KEPT


def test_a_process_logs_through_it() -> None:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    out = io.StringIO()
    try:
        configure(TelemetrySettings(log_format="text"), out)
        for _ in range(5):
            logging.getLogger("aiokafka").error("Unable connect to %s", "broker")
        assert repeats.count_repeats() == 4
        for handler in root.handlers:
            handler.close()
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    assert [line.partition("aiokafka: ")[2] for line in out.getvalue().splitlines()] == [
        "Unable connect to broker",
        "Unable connect to broker (4 more in the last 1 s)",
    ]


@dataclass
class Process:
    """One of ragtide's, with its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not done():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.2)

    def metric(self, name: str) -> float:
        said = self.log.read_text()
        return telemetry.metric(said, name) if "telemetry at" in said else -1.0


@pytest.mark.kafka
@pytest.mark.clickhouse
@pytest.mark.parametrize("arguments", [["worker", "--lane", "fast"], ["jobs"]], ids=" ".join)
def test_while_the_brokers_are_away_every_line_is_written_once(
    database: Database, tmp_path: Path, arguments: list[str]
) -> None:
    """aiokafka alone said 66 lines a second in a worker, 147 in the jobs."""
    topics = {"rag.traces": 2, "rag.traces.dead": 1, "rag.jobs": 1, "rag.labels": 1}
    with KafkaNode(tmp_path / "kafka") as node, (tmp_path / "log").open("w") as out:
        asyncio.run(create_topics(node.bootstrap, topics))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")} | {
            "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": node.bootstrap,
            "RAGTIDE_EVALUATORS__ENABLED": "inputs",
            "RAGTIDE_TELEMETRY__PORT": "0",
            "RAGTIDE_TELEMETRY__JOBS_PORT": "0",
            "RAGTIDE_TELEMETRY__LOG_FORMAT": "json",
            **reached(database),
        }
        command = [sys.executable, "-m", "ragtide.stream", *arguments]
        running = Process(subprocess.Popen(command, env=environment, stderr=out), tmp_path / "log")
        try:
            at_work = "consumes as group" if arguments[0] == "worker" else "owns the jobs' partition"
            running.until(lambda: at_work in running.log.read_text())
            node.kill()
            running.until(lambda: running.metric("ragtide_log_lines_counted") > 300)
            counted = running.metric("ragtide_log_lines_counted")
            running.process.terminate()
            assert running.process.wait(90) == 0
        finally:
            running.process.kill()
            running.process.wait()
    lines = [json.loads(line) for line in running.log.read_text().splitlines() if line.startswith("{")]
    assert len(lines) < 100
    written = collections.Counter((line["logger"], line["message"]) for line in lines)
    assert [line for line, times in written.items() if times > 1] == []
    told = [re.search(r"\((\d+) more(?: like it)? in the last \d+ s\)$", line["message"]) for line in lines]
    assert sum(int(found[1]) for found in told if found) >= counted, "every line that was left out is in a count"
