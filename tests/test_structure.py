"""The shape of the repository: small files, one concept each, named for what they are about."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("stream", "evaluators", "sinks", "drift", "dashboards")
TOP_LEVEL = {
    *PACKAGES,
    *("tests", "deploy", "docs", "benchmarks", "examples", ".ci"),
    *("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "constraints.txt", ".gitignore"),
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
