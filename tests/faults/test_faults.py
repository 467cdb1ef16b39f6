"""Each seeded fault can be applied and has tests; that these find it, `python -m tests.faults` says."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.__main__ import copied
from tests.faults.seeded import ROOT, Fault, faults, product

ALL = faults()
TEXTS = product(ROOT)


def test_there_are_enough_of_them_by_different_names() -> None:
    assert len(ALL) >= 40
    assert len({one.name for one in ALL}) == len(ALL)


@pytest.mark.parametrize("fault", ALL, ids=lambda fault: fault.name)
def test_a_fault_has_a_place_and_tests(fault: Fault) -> None:
    path = fault.place(TEXTS)
    changed = fault.changed(TEXTS[path])
    assert changed != TEXTS[path]
    if path.suffix == ".py":
        ast.parse(changed)
    assert fault.tests
    for node in fault.tests:
        file, _, test = node.partition("::")
        functions = {one.name for one in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(one, _FUNCTION)}
        assert test.partition("[")[0] in functions, f"{fault.name}: no test {node}"


def test_a_text_that_is_gone_or_there_twice_is_an_error() -> None:
    fault, file = Fault("one", "a = 1\n", "a = 2\n", ()), Path("drift/a.py")
    for text, places in (("b = 1\n", "nowhere"), ("a = 1\na = 1\n", r"drift/a\.py \(2\)")):
        with pytest.raises(LookupError, match=f"fault one: its text must be in product code once; .*{places}"):
            fault.place({file: text})
    assert fault.place({file: "a = 1\n", Path("b.py"): ""}) == file


_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_the_copy_has_a_package_of_its_own(tmp_path: Path) -> None:
    copy = copied(tmp_path / "tree")
    where = "import ragtide.stream.cli as one; print(one.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    command = [sys.executable, "-c", where]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).resolve().is_relative_to(copy)
