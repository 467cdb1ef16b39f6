"""The shape of the repository: small files, one concept each, named for what they are about."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("stream", "evaluators", "sinks", "drift", "dashboards")
TOP_LEVEL = {
    *PACKAGES,
    *("tests", "deploy", "docs", "benchmarks", "examples", ".ci"),
    *("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "constraints.txt", ".gitignore"),
}

# Who may look at the environment: whoever hands it to our own reader or to a child, and who shares cards out.
LOOK_AT_THE_ENVIRONMENT = {
    *("stream/cli/demo.py", "stream/cli/options.py", "stream/scheduler.py", "stream/local/services.py"),
    "evaluators/runtime/cards.py",
}


def tracked() -> list[Path]:
    """Every file git knows of or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).exists()]


def test_no_python_file_is_longer_than_400_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked()
        if path.suffix == ".py" and (lines := len(path.read_text().splitlines())) > 400
    }
    assert not long


def test_top_level_holds_only_what_belongs_there() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked()} <= TOP_LEVEL


@pytest.mark.parametrize("vague", ["utils", "helpers", "common", "manager", "misc"])
def test_modules_are_named_for_what_they_are_about(vague: str) -> None:
    assert not [path for path in tracked() if vague in (path.stem, *path.relative_to(ROOT).parts)]


def environment_seen(file: Path) -> Iterator[str]:
    """Every way in which a module reads or sets environment variables."""
    ways = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            yield from {node.attr} & ways
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from {alias.name for alias in node.names} & ways


def test_settings_come_from_one_place() -> None:
    ours = [path for path in tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in PACKAGES]
    assert {str(path.relative_to(ROOT)) for path in ours if any(environment_seen(path))} == LOOK_AT_THE_ENVIRONMENT


def test_what_is_silenced_is_one_rule_and_has_a_reason() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.suffix == ".py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"#\ (type: ignore(?!\[[a-z-]+\]  # \w)|(ruff: )?noqa(?!: [A-Z]+\d+  # \w))", line)
    ]
    assert not found
