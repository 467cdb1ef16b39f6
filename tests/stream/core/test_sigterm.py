"""A command that SIGTERM meets while it imports, reads settings and connects ends with status 0 and no traceback."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.infra.fresh_database import fresh_database, reached

NOBODY = "127.0.0.1:9"
COMMANDS = {
    "worker": ["worker", "--lane", "fast"],
    "worker of the encoder": ["worker", "--lane", "model"],
    "worker of two lanes": ["worker", "--lane", "fast,model"],
    "jobs": ["jobs"],
    "check": ["check"],
    "replay": ["replay", "--run", "r", "--file", "traces.jsonl"],
    "local": ["local", "--data", "data", "--broker-port", "0", "--clickhouse-port", "0"],
    "demo": ["demo", "--data", "data"],
}
# By command, modules whose import is over when the signal comes; the first is the command line's own.
IMPORTED = {
    "worker": ("click", "pydantic", "ragtide.stream.settings.loader", "numpy", "faust"),
    "jobs": ("click", "pydantic", "ragtide.drift.jobs", "ragtide.stream.jobs_process"),
    "check": ("click", "ragtide.stream.settings.loader", "aiokafka"),
    "replay": ("click", "ragtide.stream.settings.loader", "ragtide.stream.assembly"),
    "local": ("click", "rich.console", "ragtide.stream.local.run"),
    "demo": ("click", "rich.console", "ragtide.stream.demo.run"),
}
MOMENTS_S = [round(moment / 1000) / 1000 for moment in random.Random(15).sample(range(2_000_000), 4)]
# What a command says on standard error beside importtime's lines, e.g. that no broker answers, is no fault.
_IMPORTTIME = re.compile(r"import time:.*\| +([\w.]+)$")


@contextmanager
def started(tmp_path: Path, arguments: list[str], *flags: str, **variables: str) -> "Iterator[subprocess.Popen[str]]":
    """In a session of its own, which is ended whole."""
    (tmp_path / "traces.jsonl").write_text("")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")} | {
        "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": NOBODY,
        "RAGTIDE_CLICKHOUSE__URL": f"http://{NOBODY}",
        "RAGTIDE_TELEMETRY__PORT": "0",
        "RAGTIDE_TELEMETRY__JOBS_PORT": "0",
        **variables,
    }
    process = subprocess.Popen(
        [sys.executable, *flags, "-m", "ragtide.stream", *arguments],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def handles_sigterm(pid: int) -> bool:
    """Whether the process has a handler for it, as the kernel says."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def wait_for_handler(process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 60
    while not handles_sigterm(process.pid):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)


def wait_for_import(process: "subprocess.Popen[str]", module: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if (found := _IMPORTTIME.match(line)) and found[1] == module:
            return
    raise AssertionError(f"it ended with {process.wait()} before it imported {module}")


def ends_well(process: "subprocess.Popen[str]") -> None:
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors[-4000:]
    assert "Traceback" not in errors


@pytest.mark.parametrize(("command", "module"), [(name, module) for name in IMPORTED for module in IMPORTED[name]])
def test_while_it_imports(tmp_path: Path, command: str, module: str) -> None:
    with started(tmp_path, COMMANDS[command], "-X", "importtime") as process:
        wait_for_import(process, module)
        process.send_signal(signal.SIGTERM)
        ends_well(process)


@pytest.mark.broker
@pytest.mark.clickhouse
@pytest.mark.parametrize("moment_s", MOMENTS_S)
@pytest.mark.parametrize("command", ["worker", "worker of the encoder", "worker of two lanes", "jobs", "local", "demo"])
def test_within_two_seconds_of_the_start(
    clickhouse_server: EmbeddedClickHouse, tmp_path: Path, command: str, moment_s: float
) -> None:
    """Also to the whole process group, as systemd does it. No broker answers; ClickHouse does."""
    with (
        fresh_database(clickhouse_server) as database,
        started(tmp_path, COMMANDS[command], **reached(database)) as process,
    ):
        wait_for_handler(process)
        time.sleep(moment_s)
        os.killpg(process.pid, signal.SIGTERM)
        ends_well(process)


@pytest.mark.parametrize("command", ["migrate", "compare"])
def test_other_commands_are_killed_as_ever(tmp_path: Path, command: str) -> None:
    """Status 0 would say that they did their work."""
    arguments = {"migrate": ["migrate"], "compare": ["compare", "a", "b"]}[command]
    with started(tmp_path, arguments, "-X", "importtime") as process:
        wait_for_import(process, "ragtide.stream.settings.loader")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)
        assert process.returncode == -signal.SIGTERM
