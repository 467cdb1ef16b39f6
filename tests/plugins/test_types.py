"""mypy --strict has nothing to say of the example and of what the command writes, where ragtide is installed."""

import shutil
from pathlib import Path

import pytest

from ragtide.stream.new_evaluator import LONGEST_NAME, write
from tests.plugins.installing import ROOT, environ, shell

EXAMPLE = ROOT / "examples" / "cited_chunks"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All of them side by side: mypy reads what they import once."""
    made = Path(shutil.copytree(EXAMPLE, tmp_path / "work", ignore=shutil.ignore_patterns(".*")))
    write("short_answers", made, ())
    write("l" * LONGEST_NAME, made, ())
    return made


def test_types_are_sound_and_a_wrong_one_is_seen(folder: Path, tmp_path: Path) -> None:
    check = f"python -m mypy --strict --cache-dir '{ROOT / '.mypy_cache' / 'plugins'}' *.py"
    variables = environ(tmp_path / "packages")
    done = shell(check, folder, variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues found in 6 source files" in done.stdout
    evaluator = folder / "short_answers.py"
    evaluator.write_text(evaluator.read_text().replace('NotApplicable("empty_answer")', '"empty_answer"'))
    wrong = shell(check, folder, variables)
    assert wrong.returncode == 1
    assert 'Incompatible return value type (got "str", expected "Scored | NotApplicable | Failed")' in wrong.stdout
