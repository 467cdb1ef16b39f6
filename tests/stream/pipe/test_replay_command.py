"""`ragtide replay`, killed and interrupted, goes on where it was, and shows how far it is."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli.replay_progress import show_progress
from ragtide.stream.replay.loop import ReplayProgress
from ragtide.stream.replay.runs import Runs
from tests.infra.kafka_node import KafkaNode
from tests.stream.judge.chat_server import chat_server, error
from tests.stream.pipe.replaying import BASE_MS, everything, go, lines, traces
from tests.stream.pipe.test_replay_topic import on_topic

pytestmark = pytest.mark.clickhouse

ROOT = Path(__file__).parents[3]


@pytest.fixture
def command(database: Database, tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
    environ |= {
        "RAGTIDE_CLICKHOUSE__URL": database.settings.url,
        "RAGTIDE_CLICKHOUSE__USER": database.settings.user,
        "RAGTIDE_CLICKHOUSE__PASSWORD": database.settings.password.get_secret_value(),
        "RAGTIDE_CLICKHOUSE__DATABASE": database.settings.database,
        "RAGTIDE_WORKER__BLOCK_ROWS": "100",
        "RAGTIDE_WORKER__BATCH_RECORDS": "50",
    }

    def start(*args: str, stderr: int = subprocess.PIPE, **variables: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "ragtide.stream", *args],
            cwd=tmp_path,
            env={**environ, **variables},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def kill_in_the_middle(database: Database, process: "subprocess.Popen[str]", run_id: str) -> None:
    deadline = time.monotonic() + 60
    while (left := Runs(database).find(run_id)) is None or left.traces < 500:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait(10)
    left = Runs(database).find(run_id)
    assert left is not None
    assert left.state == "started"


@pytest.mark.chaos
def test_killed_in_the_middle_the_same_command_finishes(
    database: Database, command: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(3000)))
    args = ("replay", "--run", "k", "--file", str(file), "--evaluators", "inputs,operations")
    kill_in_the_middle(database, command(*args), "k")
    again = command(*args)
    said, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert "3,000 traces, 0 dead letters" in said
    counts = database.rows("SELECT count() AS n, uniqExact(trace_id) AS ids FROM traces FINAL WHERE run_id = 'k'")
    assert counts == [{"n": 3000, "ids": 3000}]
    assert database.rows("SELECT count() AS n FROM scores FINAL WHERE run_id = 'k'") == [{"n": 6000}]


@pytest.mark.chaos
@pytest.mark.kafka
def test_killed_in_the_middle_of_a_topic_it_leaves_the_rows_of_one_that_was_not(
    database: Database, command: Callable[..., "subprocess.Popen[str]"], kafka: KafkaNode
) -> None:
    topic = f"t-{uuid.uuid4().hex}"
    values = [json.dumps(trace).encode() for trace in traces(3000)]
    source = on_topic(kafka.bootstrap, topic, [(BASE_MS, value) for value in [*values, b"poison"]])
    go(database, source(), "whole", block_rows=10_000)
    args = ("replay", "--run", "k", "--topic", topic, "--evaluators", "inputs,operations")
    kill_in_the_middle(database, command(*args, RAGTIDE_KAFKA__BOOTSTRAP_SERVERS=kafka.bootstrap), "k")
    again = command(*args, RAGTIDE_KAFKA__BOOTSTRAP_SERVERS=kafka.bootstrap)
    said, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert said == f"run k: 3,000 traces, 1 dead letters, from topic {topic}\n"
    whole, stored = everything(database, "whole"), everything(database, "k")
    assert len(whole["traces"]) == 3000
    assert {table: [{**row, "run_id": "whole"} for row in found] for table, found in stored.items()} == whole


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_say_how_to_go_on(
    database: Database, command: Callable[..., "subprocess.Popen[str]"], tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(3000)))
    process = command("replay", "--run", "c", "--file", str(file), "--evaluators", "inputs")
    deadline = time.monotonic() + 60
    while Runs(database).find("c") is None:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run c: stopped; the same command continues it" in errors
    assert "Traceback" not in errors


def plain(text: str) -> str:
    """What a terminal shows, without what steers it."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_terminal_shows_a_bar(command: Callable[..., "subprocess.Popen[str]"], tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(300)))
    screen, terminal = os.openpty()
    args = ("replay", "--run", "b", "--file", str(file), "--evaluators", "inputs")
    process = command(*args, stderr=terminal, TERM="xterm", COLUMNS="100")
    os.close(terminal)
    drawn = b""
    try:
        while more := os.read(screen, 1 << 16):
            drawn += more
    except OSError:  # Linux says so where nobody writes any more
        pass
    finally:
        os.close(screen)
    said, _ = process.communicate(timeout=60)
    last = plain(drawn.decode()).splitlines()[-1]
    assert process.returncode == 0, last
    assert re.fullmatch(r"run b ━+ 100% 300 traces, 0 dead letters 0:00:00", last.strip())
    assert said == "run b: 300 traces, 0 dead letters, from file traces.jsonl\n"


def test_a_bar_goes_on_where_the_run_was_and_is_whole_where_there_is_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    with show_progress("r", resumed=5000) as report:
        report(ReplayProgress(0, 0, 0, 0))
    drawn = plain(capsys.readouterr().err)
    assert drawn.startswith("run r: going on after 5,000 traces\n")
    assert "100% 0 traces, 0 dead letters" in drawn


def test_without_a_terminal_a_line_tells_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    at = [ReplayProgress(1, 4, 3, 1), ReplayProgress(0, 0, 0, 0)]
    for every_s in (3600, 0):  # too soon, and time for every one
        monkeypatch.setattr("ragtide.stream.cli.replay_progress._EVERY_S", every_s)
        with show_progress("r") as report:
            for progress in at:
                report(progress)
    told = ["run r: 25 %, 3 traces, 1 dead letters", "run r: 100 %, 0 traces, 0 dead letters"]
    assert caplog.messages == told
    assert capsys.readouterr().err == ""


def test_it_prints_what_its_judges_used(command: Callable[..., "subprocess.Popen[str]"], tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*({**one, "answer": "Rome.", "contexts": ["Rome"]} for one in traces(3))))
    endpoint = "RAGTIDE_EVALUATORS__JUDGE__ENDPOINTS__LOCAL__"
    with chat_server(error(401)) as server:
        settings = {f"{endpoint}URL": server.url, f"{endpoint}MODEL": "m"}
        process = command("replay", "--run", "j", "--file", str(file), "--evaluators", "faithfulness", **settings)
        said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert said.startswith("run j: 3 traces")
    assert "judge local: 0 calls, 0 replies from the cache, " in errors
    assert "failures (judge_rejected " in errors
