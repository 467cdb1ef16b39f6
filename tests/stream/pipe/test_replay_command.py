"""`ragwatch replay`, killed and interrupted, goes on where it was."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sinks.clickhouse.database import Database
from stream.replay.runs import Runs
from tests.stream.pipe.replaying import lines, traces

pytestmark = pytest.mark.clickhouse

ROOT = Path(__file__).parents[3]


@pytest.fixture
def command(database: Database, tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAGWATCH_")}
    environ |= {
        "PYTHONPATH": str(ROOT),
        "RAGWATCH_CLICKHOUSE__URL": database.settings.url,
        "RAGWATCH_CLICKHOUSE__USER": database.settings.user,
        "RAGWATCH_CLICKHOUSE__PASSWORD": database.settings.password.get_secret_value(),
        "RAGWATCH_CLICKHOUSE__DATABASE": database.settings.database,
        "RAGWATCH_WORKER__BLOCK_ROWS": "100",
        "RAGWATCH_WORKER__BATCH_RECORDS": "50",
    }

    def start(*args: str, **variables: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "stream.cli", *args],
            cwd=tmp_path,
            env={**environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.chaos
def test_killed_in_the_middle_the_same_command_finishes(
    database: Database, command: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(3000)))
    args = ("replay", "--run", "k", "--file", str(file), "--evaluators", "inputs,operations")
    process = command(*args)
    deadline = time.monotonic() + 60
    while (left := Runs(database).find("k")) is None or left.traces < 500:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait(10)
    left = Runs(database).find("k")
    assert left is not None
    assert left.state == "started"
    again = command(*args)
    said, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert "3,000 traces, 0 dead letters" in said
    counts = database.rows("SELECT count() AS n, uniqExact(trace_id) AS ids FROM traces FINAL WHERE run_id = 'k'")
    assert counts == [{"n": 3000, "ids": 3000}]
    assert database.rows("SELECT count() AS n FROM scores FINAL WHERE run_id = 'k'") == [{"n": 6000}]


def test_ctrl_c_says_how_to_go_on(
    database: Database, command: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces(3000)))
    process = command("replay", "--run", "c", "--file", str(file), "--evaluators", "inputs")
    deadline = time.monotonic() + 60
    while Runs(database).find("c") is None:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run c: stopped; the same command goes on where it was" in errors
    assert "Traceback" not in errors
