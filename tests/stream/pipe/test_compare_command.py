"""`ragtide compare`: what it prints, and the exit status that a pipeline of tests relies on."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result
from scipy import stats

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.sample import score
from ragtide.stream.cli import main
from ragtide.stream.replay.runs import STARTED, RunRow
from tests.infra.fresh_database import reached

pytestmark = pytest.mark.clickhouse

BEFORE = [0.2 + 0.01 * (n % 30) for n in range(60)]
AFTER = [value - 0.1 - 0.002 * (n % 7) for n, value in enumerate(BEFORE)]
NAMES = [f"trace-{n}" for n in range(59)] + ["\x1b[2J\x1b]0;owned\x07"]


def run(*args: str, **variables: str) -> Result:
    return CliRunner().invoke(main, ["compare", *args], env={"RAGTIDE_CONFIG": None, "COLUMNS": "200", **variables})


def store(database: Database, run_id: str, values: list[float], **changes: Any) -> None:
    rows = [
        score(name, run_id=run_id, evaluator="groundedness", metrics={"groundedness": value}, **changes)
        for name, value in zip(NAMES, values, strict=True)
    ]
    database.insert("scores", rows)


@pytest.fixture
def runs(database: Database) -> dict[str, str]:
    """Two runs, the second worse; how the command reaches them."""
    store(database, "before", BEFORE, fingerprint="f1")
    store(database, "after", AFTER, fingerprint="f2")
    database.insert("scores", [score("t", run_id="after", evaluator="readability", metrics={"flesch": 1.0})])
    return reached(database)


def test_the_exit_status_tells_worse_from_well_from_an_error(runs: dict[str, str]) -> None:
    assert run("before", "after", **runs).exit_code == 1
    assert run("after", "before", **runs).exit_code == 0
    assert run("before", "after", "--min-change", "0.2", **runs).exit_code == 0
    unknown = run("before", "aftr", **runs)
    assert (unknown.exit_code, unknown.output) == (2, "ragtide: unknown run 'aftr'; runs with scores: after\n")
    for wrong in (["before", "before"], ["before"], ["before", "after", "--from", "2026-03-02", "--to", "2026-03-01"]):
        assert run(*wrong, **runs).exit_code == 2


def test_the_table_tells_figures_traces_and_what_else_differs(runs: dict[str, str], database: Database) -> None:
    database.insert("runs", [RunRow("after", "file x", [], {}, "h", STARTED, "{}", 0, 0, 1, score("t").time)])
    lines = run("before", "after", "--top", "4", **runs).output.splitlines()
    low, high = stats.ttest_rel(AFTER, BEFORE).confidence_interval(0.95)
    assert lines[0].split()[:6] == ["metric", "verdict", "A", "B", "B", "-"]
    for said in ("groundedness.groundedness", "worse", f"{low:+.4g} to {high:+.4g}", "60", "100.0%"):
        assert said in lines[1]
    assert "groundedness.groundedness moved most in" in lines
    moved = [line for line in lines if line.startswith("  ")]
    assert len(moved) == 4
    assert moved[0].startswith("  trace-")
    assert lines[-3:] == [
        "run after is not complete",
        "groundedness scored A and B in different ways: fingerprint f1, then f2",
        "only after has: readability",
    ]


def test_an_id_cannot_move_the_cursor(runs: dict[str, str]) -> None:
    output = run("before", "after", "--top", "100", **runs).output
    assert "\x1b" not in output
    assert r"  \x1b[2J\x1b]0;owned\x07: " in output


def test_json_has_all_of_it(runs: dict[str, str]) -> None:
    told = json.loads(run("before", "after", "--json", "--alpha", "0.01", "--top", "1", **runs).output)
    known = stats.ttest_rel(AFTER, BEFORE)
    low, high = known.confidence_interval(0.99)
    (change,) = told["metrics"]
    assert told["worse"] == ["groundedness.groundedness"]
    assert (told["run_a"], told["run_b"], told["alpha"], told["only_b"]) == ("before", "after", 0.01, ["readability"])
    assert told["fingerprints"] == {"groundedness": {"a": ["f1"], "b": ["f2"]}}
    assert (change["low"], change["high"], change["p"]) == pytest.approx((low, high, known.pvalue))
    assert (change["better"], change["verdict"], change["paired"]) == ("higher", "worse", 60)
    assert [set(moved) for moved in change["moved"]] == [{"trace_id", "a", "b"}]


def test_runs_without_traces_in_common_are_marked(runs: dict[str, str], database: Database) -> None:
    rows = [
        score(f"o{n}", run_id="o", evaluator="groundedness", metrics={"groundedness": v}) for n, v in enumerate(AFTER)
    ]
    database.insert("scores", rows)
    output = run("before", "o", **runs).output
    low, high = stats.ttest_ind(AFTER, BEFORE, equal_var=False).confidence_interval(0.95)
    assert f"{low:+.4g} to {high:+.4g} *" in output
    assert "A and B are compared as independent" in output
