"""`ragtide check` loads models only where --models asks for it; measured in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.evaluators.models import tiny

RUNTIMES = ("onnxruntime", "torch", "transformers", "tokenizers", "sentence_transformers")
MOST_MB = 300
# Peak memory is read from /proc: getrusage counts what the parent held before exec, and this parent holds torch.
SCRIPT = f"""
import atexit, json, sys
def report():
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    loaded = [name for name in {RUNTIMES!r} if name in sys.modules]
    print(json.dumps({{"peak_mb": int(peak.split()[1]) / 1024, "loaded": loaded}}), file=sys.stderr)
atexit.register(report)
from ragtide.stream.cli import main
main()
"""


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.classifier(tmp_path_factory.mktemp("models") / "polite", "bert", ("rude", "polite"))


def check(folder: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """What it prints, and what it took. Everything that embeds is on, and one classifier is here."""
    settings = folder.parent / "ragtide.toml"
    settings.write_text(
        '[kafka]\nbootstrap_servers = "127.0.0.1:9"\n[clickhouse]\nurl = "http://127.0.0.1:9"\n'
        "[telemetry]\nport = 0\njobs_port = 0\n"
        "[evaluators.encoder]\nint8_tolerance = 0.1\n"
        f'[evaluators.models.original]\nsource = "{folder}"\nint8_tolerance = 0.1\n'
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "check", "--config", str(settings), *options],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return done.stdout, json.loads(done.stderr.splitlines()[-1])


def test_check_loads_no_model_and_stays_small(classifier: Path) -> None:
    said, took = check(classifier)
    assert "ok    encoder: all-MiniLM-L6-v2 is here" in said
    assert took["loaded"] == []
    assert took["peak_mb"] < MOST_MB


def test_check_with_models_loads_each_and_says_which_are_not_here(classifier: Path) -> None:
    said, took = check(classifier, "--models")
    assert "ok    encoder: all-MiniLM-L6-v2@" in said
    assert "384 dimensions" in said
    wrong = next(line for line in said.splitlines() if line.startswith("WRONG model original: "))
    assert "it has rude, polite" in wrong, "its labels are read only when it is loaded"
    assert "-     model distilgpt2: the model distilgpt2 is not here: ragtide models fetch distilgpt2" in said
    assert "onnxruntime" in took["loaded"]
