"""A replay runs the lanes that it is asked for, and loads the models of no other."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.infra.fresh_database import reached
from tests.stream.pipe.replaying import lines, traces

pytestmark = pytest.mark.clickhouse

RUNTIMES = ("onnxruntime", "torch", "transformers", "tokenizers", "sentence_transformers")
SCRIPT = f"""
import atexit, json, sys
atexit.register(lambda: print(json.dumps([name for name in {RUNTIMES!r} if name in sys.modules]), file=sys.stderr))
from ragtide.stream.cli import main
main()
"""


def replay(database: Database, folder: Path, run: str, *options: str) -> tuple[int, str]:
    """The exit status, and the last line on standard error: which runtimes were imported."""
    file = folder / "traces.jsonl"
    file.write_text(lines(*traces(5)))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "replay", "--run", run, "--file", str(file), *options],
        capture_output=True,
        text=True,
        env=environment | reached(database),
        check=False,
    )
    return done.returncode, done.stderr.splitlines()[-1] if done.returncode == 0 else done.stderr


def evaluators_of(database: Database, run: str) -> set[str]:
    rows = database.rows("SELECT DISTINCT evaluator FROM scores FINAL WHERE run_id = {run:String}", {"run": run})
    return {row["evaluator"] for row in rows}


def count(database: Database, table: str, run: str) -> int:
    rows = database.rows(f"SELECT count() AS n FROM {table} FINAL WHERE run_id = {{run:String}}", {"run": run})
    return int(rows[0]["n"])


@pytest.mark.parametrize("options", [("--lane", "fast"), ("--evaluators", "inputs,rouge")], ids=" ".join)
def test_without_the_lane_of_models_none_is_loaded(
    database: Database, tmp_path: Path, options: tuple[str, ...]
) -> None:
    status, loaded = replay(database, tmp_path, "r", *options)
    assert status == 0, loaded
    assert json.loads(loaded) == []
    found = evaluators_of(database, "r")
    assert {"inputs", "rouge"} <= found
    assert not found & {"groundedness", "toxicity"}
    assert count(database, "traces", "r") == 5
    assert count(database, "embeddings", "r") == 0


def test_of_the_lane_of_models_no_other_evaluator_runs(database: Database, tmp_path: Path) -> None:
    status, loaded = replay(database, tmp_path, "r", "--lane", "model", "--set", "evaluators.encoder.backend=onnx")
    assert status == 0, loaded
    assert "onnxruntime" in json.loads(loaded)
    found = evaluators_of(database, "r")
    assert "groundedness" in found
    assert not found & {"inputs", "rouge"}
    assert count(database, "traces", "r") == 5, "windows count what was seen"


def test_an_evaluator_of_another_lane_and_an_unknown_lane_are_refused(database: Database, tmp_path: Path) -> None:
    status, said = replay(database, tmp_path, "r", "--lane", "fast", "--evaluators", "groundedness,inputs")
    assert status == 2
    assert "these evaluators run in another lane: groundedness (model); only fast is chosen" in said
    status, said = replay(database, tmp_path, "r", "--lane", "quick")
    assert status == 2
    assert "there is no 'quick'; there are: fast, judge, model" in said
    assert database.rows("SELECT 1 FROM runs") == []
