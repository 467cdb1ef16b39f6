"""The shape of the repository: small files, one concept each, named for what they are about."""

import ast
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("stream", "evaluators", "sinks", "drift", "dashboards")
TOP_LEVEL = {
    *PACKAGES,
    *("src", "tests", "deploy", "docs", "benchmarks", "examples", ".ci"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"),
    *("pyproject.toml", "Makefile", "constraints.txt", ".gitignore"),
}

# Who may look at the environment: whoever hands it to our own reader or to a child, takes secrets out of it, and who
# shares cards out.
LOOK_AT_THE_ENVIRONMENT = {
    *("stream/cli/demo.py", "stream/cli/options.py", "stream/jobs_process.py", "stream/local/services.py"),
    *("stream/api/effective_settings.py", "evaluators/runtime/cards.py", "sinks/clickhouse/embedded/confinement.py"),
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


def test_the_package_is_the_folders_at_the_top() -> None:
    package = ROOT / "src" / "ragtide"
    assert {path.name: path.resolve() for path in package.iterdir() if path.is_symlink()} == {
        name: ROOT / name for name in PACKAGES
    } | {"runbooks": ROOT / "docs" / "runbooks"}
    assert {path.name for path in package.iterdir() if path.is_file()} == {"__init__.py", "py.typed"}


def texts() -> Iterator[tuple[str, str]]:
    """The name and the text of every tracked file that is text."""
    for path in tracked():
        if path.is_file():
            with suppress(UnicodeDecodeError):
                yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def imports_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_nothing_imports_a_folder_of_the_repository_by_its_own_name() -> None:
    """Where the repository is on the path that works, and a module is there twice; nowhere else it does."""
    found = [
        f"{name}: {module}"
        for name, text in texts()
        if name.endswith(".py")
        for module in imports_of(ast.parse(text))
        if module.partition(".")[0] in PACKAGES
    ]
    assert not found


def test_no_program_in_a_text_imports_or_runs_one_either() -> None:
    one = "|".join(PACKAGES)
    imported = re.compile(rf"\bfrom ({one})(\.\w+)* import\b|(?<=-m )({one})\b|\"-m\", \"({one})\b")
    assert not [f"{name}: {found[0]}" for name, text in texts() for found in imported.finditer(text)]


def test_the_name_that_the_product_had_is_in_one_line_of_the_changelog() -> None:
    old = "rag" + "watch"
    assert not [path for path in tracked() if old in str(path.relative_to(ROOT)).lower()]
    held = {
        str(path.relative_to(ROOT)): content.count(old.encode())
        for path in tracked()
        if path.is_file() and old.encode() in (content := path.read_bytes().lower())
    }
    assert held == {"CHANGELOG.md": 1}


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


def read_keys(tree: ast.AST) -> Iterator[int]:
    """Lines that read a key of attributes: `x.attributes["key"]`, `attributes.get("key")`, `"key" in attributes`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            read = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            read = node.func.value
        elif isinstance(node, ast.Compare) and any(isinstance(one, ast.In | ast.NotIn) for one in node.ops):
            read = node.comparators[0]
        else:
            continue
        if "attributes" in (getattr(read, "attr", ""), getattr(read, "id", "")):
            yield node.lineno


def test_no_code_decides_by_attributes_of_problems_but_through_the_typed_codec() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in ("drift", "dashboards", "stream/cli", "stream/demo")
        for path in (ROOT / folder).rglob("*.py")
        if path != ROOT / "drift" / "attributes.py"
        for line in read_keys(ast.parse(path.read_text()))
    ]
    assert not found, "read them by drift.attributes.evidence_of"
    seen = "a.attributes['x']; attributes.get('x'); 'x' in one.attributes; attributes['x'] = 1; {**attributes}"
    assert len(list(read_keys(ast.parse(seen)))) == 3, "the test sees what it looks for"
