"""`ragtide evaluate FILE` prints the summary, writes scores, and exits 1 where records were rejected."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.stream.cli import main
from tests.stream.api.results import evaluated, trace, traces


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["evaluate", *args], env={"RAGTIDE_CONFIG": None, "COLUMNS": "250"})


def written(folder: Path, *records: Any) -> Path:
    file = folder / "traces.jsonl"
    file.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records))
    return file


def test_it_prints_a_line_per_metric_and_what_was_rejected(tmp_path: Path) -> None:
    file = written(tmp_path, *traces(3), "oops", trace(4, app=...))
    done = run(str(file), "--evaluators", "exact_match,operations,sari")
    assert done.exit_code == 1
    lines = done.output.splitlines()
    (exact,) = [line for line in lines if line.startswith("exact_match.exact_match")]
    assert exact.split()[2] == "0.3333"
    assert "no score: sari: 3 other_task" in lines
    assert "5 records: 3 evaluated, 2 rejected" in lines
    assert "rejected: record 4: malformed (byte 0)" in lines
    assert "rejected: record 5: app is required" in lines


def test_as_json_and_with_scores_in_a_file(tmp_path: Path) -> None:
    file, out = written(tmp_path, *traces(3)), tmp_path / "scores.jsonl"
    done = run(
        str(file),
        "--evaluators",
        "rouge",
        "--set",
        "evaluators.params.rouge.use_stemmer=true",
        "--json",
        "--out",
        str(out),
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert (found["records"], found["evaluated"], found["rejected"]) == (3, 3, [])
    wanted = evaluated(file, "rouge", evaluators={"params": {"rouge": {"use_stemmer": True}}})
    assert [(one["name"], one["value"], one["low"]) for one in found["metrics"]] == [
        (one.name, one.value, one.low) for one in wanted.summary()
    ]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(one["record"], one["trace_id"], one["evaluator"], one["metrics"]) for one in rows] == [
        (one.record, one.trace_id, one.evaluator, one.metrics) for one in wanted.scores()
    ]


@pytest.mark.parametrize("shell", ["cat {} | {} evaluate /dev/stdin {}", "cat {} | {} evaluate - {}"])
def test_a_pipe_is_evaluated(shell: str, tmp_path: Path) -> None:
    file = written(tmp_path, *traces(2), "oops")
    command = shell.format(file, f"{sys.executable} -m ragtide.stream", "--evaluators exact_match")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
    done = subprocess.run(command, shell=True, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "3 records: 2 evaluated, 1 rejected" in done.stdout.splitlines()


def test_text_of_records_cannot_control_the_terminal(tmp_path: Path) -> None:
    done = run(
        str(written(tmp_path, trace(0, app="a\x1b[31m"), trace(1, latency={"total_ms": 1}))), "--evaluators", "inputs"
    )
    assert "\x1b" not in done.output
    assert done.exit_code == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--evaluators", "rogue"], "there is no evaluator 'rogue'; did you mean 'rouge'?"),
        (["--lane", "slow"], "there is no 'slow'; there are: fast, judge, model"),
        (["--evaluators", "rouge", "--lane", "model"], "another lane: rouge (fast); only model is chosen"),
        (["--set", "rouge"], "NAME=VALUE"),
        (["--out", "FILE"], "--out is FILE itself; choose another file"),
    ],
)
def test_mistakes_end_with_status_2_and_change_no_file(tmp_path: Path, options: list[str], words: str) -> None:
    file = written(tmp_path, trace(0))
    before = file.read_bytes()
    done = run(str(file), *(str(file) if one == "FILE" else one for one in options))
    assert (done.exit_code, file.read_bytes()) == (2, before)
    assert words in done.output


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    done = run(str(tmp_path / "none.jsonl"))
    assert done.exit_code == 2
    assert done.output.splitlines()[-1].endswith(
        "none.jsonl: cannot be read: No such file or directory; give the path of a JSON lines file"
    )
