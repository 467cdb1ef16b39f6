"""The page and the notebook of the Python API run as they are written."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ragtide import Result, ResultComparison
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.api import labelling
from ragtide.stream.labels.joining import Message
from ragtide.stream.settings.sections import KafkaSettings
from tests.infra.fresh_database import reached
from tests.stream.api.results import traces

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "examples" / "evaluate.ipynb"


def run(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell and return what a notebook would show: the value of its last line."""
    tree = ast.parse(cell)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


def test_every_cell_of_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert (notebook["nbformat"], len(cells) > 5) == (4, True)
    assert not any(cell["outputs"] for cell in cells), "clear the outputs before a commit"
    names: dict[str, Any] = {}
    shown = [run("".join(cell["source"]), names) for cell in cells]
    tables = [one for one in shown if isinstance(one, Result | ResultComparison)]
    assert len(tables) == 2
    assert all("<table>" in one._repr_html_() for one in tables)
    assert "exact_match.exact_match" in names["comparison"].worse


@pytest.mark.clickhouse
def test_the_programs_of_the_page_run(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    Path("traces.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in traces(5)))
    database.command("INSERT INTO insights (insight_id, type, app) VALUES ('i', 'cost', 'support')")
    for name, value in reached(database).items():
        monkeypatch.setenv(name, value)
    sent: list[Message] = []

    def send(kafka: KafkaSettings, messages: list[Message]) -> list[bool]:
        sent.extend(messages)
        return [True] * len(messages)

    monkeypatch.setattr(labelling, "send", send)
    programs = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text(), re.DOTALL | re.MULTILINE
    )
    names: dict[str, Any] = {}
    shown = [run(program, names) for program in programs]
    assert isinstance(shown[0], Result)
    assert len(shown[0]) == 5
    assert shown[1].keys() == {"rouge_1", "rouge_2", "rouge_l", "rouge_lsum"}
    assert list(names["frame"]["trace_id"]) == ["t-1"]
    assert shown[-1] == len(sent) == 1
