"""Rooms of drift have doors: code outside a room imports only the names that its `__init__` exports."""

import ast
import doctest
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
DRIFT = "ragtide.drift"
ROOMS = sorted(file.parent.name for file in (ROOT / "drift").glob("*/__init__.py"))


class Import(NamedTuple):
    """`from module import name`; of `import module` the name is empty."""

    where: str
    module: str
    name: str

    @property
    def room(self) -> str:
        """The room that it imports from; empty if none."""
        parts = f"{self.module}.{self.name}".removeprefix(f"{DRIFT}.").split(".")
        return parts[0] if self.module.startswith(DRIFT) and parts[0] in ROOMS else ""

    @property
    def is_of_own_room(self) -> bool:
        """Whether the module that imports lies in the room."""
        return self.where.startswith(f"drift/{self.room}/")


def imports_of(where: str, source: str) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield from (Import(where, node.module or "", one.name) for one in node.names)
        elif isinstance(node, ast.Import):
            yield from (Import(where, one.name, "") for one in node.names)


@cache
def product_imports() -> tuple[Import, ...]:
    """What product code imports from rooms, at the top of modules or within functions."""
    files = [
        file for top in ("drift", "stream", "sinks", "dashboards", "evaluators") for file in (ROOT / top).rglob("*.py")
    ]
    found = (one for file in files for one in imports_of(str(file.relative_to(ROOT)), file.read_text()))
    return tuple(one for one in found if one.room)


def exports_of(room: str) -> list[str]:
    return list(getattr(import_module(f"{DRIFT}.{room}"), "__all__", ()))


def past_the_door(imports: Iterable[Import]) -> list[Import]:
    """Imports from outside of a room that are not of a name in its `__all__`; the room itself may be imported."""
    outside = (one for one in imports if not one.is_of_own_room and f"{one.module}.{one.name}" != f"{DRIFT}.{one.room}")
    return [one for one in outside if one.module != f"{DRIFT}.{one.room}" or one.name not in exports_of(one.room)]


def test_nothing_is_imported_from_another_room_but_what_it_exports() -> None:
    assert past_the_door(product_imports()) == []


@pytest.mark.parametrize(
    ("source", "are_found"),
    [
        ("from ragtide.drift.problems import ProblemKey", False),
        ("from ragtide.drift import problems", False),
        ("from ragtide.drift.problems.report import ProblemKey", True),
        ("from ragtide.drift.problems import severity_of", True),
        ("from ragtide.drift.problems import store", True),
        ("import ragtide.drift.problems.report", True),
        ("def f():\n    from ragtide.drift.problems.report import ProblemKey", True),
        ("from ragtide.drift.sql import text", False),
    ],
)
def test_the_test_finds_imports_past_the_door(source: str, *, are_found: bool) -> None:
    seen = [one for one in imports_of("stream/new.py", source) if one.room]
    assert bool(past_the_door(seen)) == are_found
    assert not past_the_door(one for one in imports_of("drift/problems/new.py", source) if one.room)


def test_a_module_imports_its_own_room_s_modules_and_not_its_door() -> None:
    own = [one for one in product_imports() if one.is_of_own_room and one.module == f"{DRIFT}.{one.room}"]
    assert [one for one in own if not (ROOT / "drift" / one.room / f"{one.name}.py").exists()] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_exports_only_what_others_import(room: str) -> None:
    used = {one.name for one in product_imports() if one.module == f"{DRIFT}.{room}" and not one.is_of_own_room}
    assert set(exports_of(room)) - used == set()


@pytest.mark.parametrize("room", ROOMS)
def test_no_exported_name_hides_a_module_of_the_room(room: str) -> None:
    door = import_module(f"{DRIFT}.{room}")
    same = [name for name in exports_of(room) if (ROOT / "drift" / room / f"{name}.py").exists()]
    assert all(isinstance(getattr(door, name), ModuleType) for name in same)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for_and_its_example_runs(room: str) -> None:
    door = import_module(f"{DRIFT}.{room}")
    assert door.__doc__
    assert doctest.testmod(door).failed == 0
