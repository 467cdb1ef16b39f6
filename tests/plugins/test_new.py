"""`ragtide evaluators new`: what it writes works as it is, and nothing that is there is lost."""

import ast
import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.cli import main
from ragtide.stream.new_evaluator import FILES, LONGEST_NAME, write
from tests.plugins.installing import ROOT, environ, shell

NAMES = ("short", "short_answers", "l" * LONGEST_NAME)
RULES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["select"]


def new(*args: str) -> Result:
    return CliRunner().invoke(main, ["evaluators", "new", *args], env={"RAGTIDE_CONFIG": None})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several of them side by side, as the command wrote them."""
    made = tmp_path_factory.mktemp("work") / "our" / "evaluators"
    for name in NAMES:
        told = new(name, "--directory", str(made))
        assert told.exit_code == 0, told.output
    return made


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environ(tmp_path_factory.mktemp("packages"))


def test_it_says_what_it_wrote_and_how_to_register_it(tmp_path: Path) -> None:
    told = new("short_answers", "--directory", str(tmp_path)).output
    for file in ("short_answers.py", "test_short_answers.py", "short_answers.golden.json"):
        assert f"wrote {tmp_path / file}\n" in told
    lines = told[told.index("[project") :]
    assert tomllib.loads(lines)["project"]["entry-points"]["ragtide.evaluators"] == {"short_answers": "short_answers"}


def test_its_own_tests_pass(folder: Path, variables: dict[str, str]) -> None:
    done = shell("python -m pytest -q -p no:cacheprovider", folder, variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{2 * len(NAMES)} passed" in done.stdout


def test_its_own_test_fails_where_a_score_moves(tmp_path: Path, variables: dict[str, str]) -> None:
    evaluator, _, _ = write("short_answers", tmp_path, ())
    evaluator.write_text(evaluator.read_text().replace("words <= params", "words >= params"))
    done = shell("python -m pytest -q -p no:cacheprovider", tmp_path, variables)
    assert done.returncode == 1
    assert "- one_word_too_many: the evaluator says" in done.stdout


@pytest.mark.parametrize("columns", [88, 120])
def test_ruff_has_nothing_to_say(folder: Path, variables: dict[str, str], columns: int) -> None:
    how = f"--isolated --no-cache --line-length {columns}"
    rules = ",".join(RULES)
    done = shell(f"ruff check {how} --select {rules} . && ruff format {how} --check .", folder, variables)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("there", FILES)
def test_nothing_is_overwritten_and_then_nothing_is_written(tmp_path: Path, there: str) -> None:
    kept = tmp_path / there.format(name="short_answers")
    kept.write_text("mine")
    told = new("short_answers", "--directory", str(tmp_path))
    assert told.exit_code == 2
    assert f"nothing was written: {kept} is there already" in told.output
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Short", "lower-case letters"),
        ("short-answers", "lower-case letters"),
        ("../short", "lower-case letters"),
        ("9lives", "lower-case letters"),
        ("", "lower-case letters"),
        ("kürzer", "lower-case letters"),
        ("l" * (LONGEST_NAME + 1), f"at most {LONGEST_NAME}"),
        ("import", "means something else"),
        ("float", "means something else"),
        ("rouge", "there is an evaluator 'rouge' already"),
        ("statistics", "there is a Python module 'statistics' already"),
        ("ragtide", "there is a Python module 'ragtide' already"),
    ],
)
def test_a_name_that_cannot_be_one_is_told(tmp_path: Path, name: str, says: str) -> None:
    told = new("--directory", str(tmp_path), "--", name)
    assert told.exit_code == 2
    assert says in told.output
    assert not list(tmp_path.iterdir())


def test_no_name_may_be_one_that_the_files_use_otherwise(tmp_path: Path) -> None:
    evaluator, test, _ = write("placeholder", tmp_path, ())
    imported = {
        alias.name
        for file in (evaluator, test)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    taken = {name for name in imported if name.islower()} - {"placeholder"}
    assert {"evaluator", "dataclass", "check_evaluator"} <= taken
    for name in taken:
        with pytest.raises(ConfigError, match="means something else"):
            write(name, tmp_path, ())


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write into .*file/below"):
        write("short_answers", tmp_path / "file" / "below", ())


def test_a_case_of_the_golden_file_is_just_over_the_limit(tmp_path: Path) -> None:
    _, _, golden = write("short_answers", tmp_path, ())
    cases = json.loads(golden.read_text())["cases"]
    assert len(cases["one_word_too_many"]["trace"]["answer"].split()) == 101
