"""Settings that cannot work end the process with status 2 and say what to change; nothing was read or written.

Typos and unknown variables: tests/stream/pipe/test_cli.py. Ports of workers and local services: test_worker.py,
test_local.py and test_embedded_process.py.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

HIDDEN = ("onnxruntime", "torch", "sentence_transformers")


def ragtide(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A command in an empty folder, with these variables alone."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
    return subprocess.run(
        [Path(sys.executable).with_name("ragtide"), *arguments],
        cwd=folder,
        env={**environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def without_encoder(tmp_path: Path) -> str:
    """A path on which no backend of the encoder is installed."""
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({HIDDEN!r}))\n")
    return str(tmp_path)


def test_an_enabled_evaluator_whose_resource_is_missing_stops_the_worker(tmp_path: Path, without_encoder: str) -> None:
    done = ragtide(
        tmp_path,
        *("worker", "--lane", "model"),
        PYTHONPATH=without_encoder,
        RAGTIDE_EVALUATORS__ENABLED="inputs,groundedness",
        RAGTIDE_TELEMETRY__PORT="0",
    )
    assert done.returncode == 2, done.stderr
    assert "evaluators.enabled names 'groundedness', which cannot run: onnxruntime" in done.stderr
    assert "pip install 'ragtide[local]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_same_evaluator_not_named_is_off_and_listed_with_the_reason(tmp_path: Path, without_encoder: str) -> None:
    done = ragtide(tmp_path, "evaluators", "groundedness", PYTHONPATH=without_encoder)
    assert done.returncode == 0, done.stderr
    assert "pip install 'ragtide[local]'" in done.stdout


@pytest.mark.parametrize(("command", "setting"), [("jobs", "jobs_port"), ("worker --lane fast", "port")])
def test_a_telemetry_port_in_use_stops_the_process(tmp_path: Path, command: str, setting: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        nowhere = {"RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1", "RAGTIDE_CLICKHOUSE__URL": "http://127.0.0.1:1"}
        name = f"RAGTIDE_TELEMETRY__{setting.upper()}"
        done = ragtide(tmp_path, *command.split(), **{name: port}, **nowhere)
    assert done.returncode == 2, done.stderr
    assert f"telemetry.{setting}: cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr
