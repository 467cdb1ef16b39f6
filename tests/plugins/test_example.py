"""The example package: installed as somebody would, it is listed, planned, run, and passes its own tests."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.infra.fresh_database import reached
from tests.plugins.installing import ROOT, environ, shell

EXAMPLE = ROOT / "examples" / "cited_chunks"
PLANNED = """
from ragtide.stream.assembly import assemble
from ragtide.stream.settings.loader import Settings
print([each.evaluator.id for each in assemble(Settings(), "fast").plan.prepared])
"""


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the example is installed."""
    made = environ(tmp_path_factory.mktemp("packages"))
    done = shell("pip install --quiet .", EXAMPLE, made)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Its files but for the evaluator: what is tested there is what was installed."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("cited_chunks.py", ".*")))


def test_it_is_listed_as_available(variables: dict[str, str], tmp_path: Path) -> None:
    told = shell("ragtide evaluators --json", tmp_path, variables)
    [info] = [info for info in json.loads(told.stdout) if info["id"] == "cited_chunks"]
    assert (info["available"], info["enabled"], info["lane"]) == (True, True, "fast")
    rules = {metric["key"]: (metric["rule"], metric["threshold"]) for metric in info["metrics"]}
    assert rules == {"valid_citations": ("share", 1.0), "cited": ("mean", 1.0)}


def test_it_is_in_the_plan_of_its_lane(variables: dict[str, str], tmp_path: Path) -> None:
    told = shell(f"python -c '{PLANNED}'", tmp_path, variables)
    assert "'cited_chunks'" in told.stdout, told.stderr
    assert "'rouge'" in told.stdout


@pytest.mark.clickhouse
def test_it_scores_traces_like_any_other(variables: dict[str, str], tmp_path: Path, database: Database) -> None:
    golden = json.loads((EXAMPLE / "cited_chunks.golden.json").read_text())["cases"]
    traces = [
        {"trace_id": name, "time": "2026-01-01T12:00:00Z", "app": "docs", "question": "?", **case["trace"]}
        for name, case in golden.items()
    ]
    (tmp_path / "traces.jsonl").write_text("\n".join(map(json.dumps, traces)))
    done = shell(
        "ragtide replay --run r --file traces.jsonl --evaluators cited_chunks,rouge",
        tmp_path,
        variables | reached(database),
    )
    assert done.returncode == 0, done.stderr
    rows = database.rows("SELECT trace_id, status, reason, metrics FROM scores FINAL WHERE evaluator = 'cited_chunks'")
    assert {row["trace_id"]: stored(row) for row in rows} == {name: said(case) for name, case in golden.items()}


def test_its_own_tests_pass(variables: dict[str, str], folder: Path) -> None:
    done = shell("python -m pytest -q -p no:cacheprovider", folder, variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_its_own_tests_fail_where_a_score_moves(variables: dict[str, str], folder: Path) -> None:
    golden = folder / "cited_chunks.golden.json"
    golden.write_text(golden.read_text().replace('"valid_citations": 0.5', '"valid_citations": 0.51'))
    done = shell("python -m pytest -q -p no:cacheprovider", folder, variables)
    assert done.returncode == 1
    assert "- one_of_two_names_nothing: the evaluator says" in done.stdout


def stored(row: Mapping[str, object]) -> tuple[object, object, object]:
    return row["status"], row["reason"], row["metrics"]


def said(case: Mapping[str, Mapping[str, object]]) -> tuple[object, object, object]:
    if "scored" in case:
        return "scored", "", case["scored"]["metrics"]
    return "not_applicable", case["not_applicable"]["reason"], {}
