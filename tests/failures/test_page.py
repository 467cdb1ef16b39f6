"""docs/failures.md: one test per row, and every test of this package is on it."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "failures.md"
ROW = re.compile(r"^\| (?!what |---)(?P<cells>.*) \|$", re.MULTILINE)
NAMED = re.compile(r"`(test_\w+\.py)::(test_\w+)`")


def _tests_in(files: list[Path]) -> set[tuple[str, str]]:
    return {
        (file.name, node.name)
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_row_names_a_test_that_exists() -> None:
    existing = _tests_in(list(TESTS.rglob("test_*.py")))
    rows = [found["cells"] for found in ROW.finditer(PAGE.read_text())]
    assert len(rows) > 30
    for row in rows:
        named = NAMED.findall(row.split(" | ")[-1])
        assert named, row
        assert set(named) <= existing, row


def test_every_test_of_this_package_is_on_the_page() -> None:
    ours = _tests_in([file for file in Path(__file__).parent.glob("test_*.py") if file != Path(__file__)])
    on_page = set(NAMED.findall(PAGE.read_text()))
    assert ours <= on_page
