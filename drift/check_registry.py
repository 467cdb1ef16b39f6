"""Find every check: the classes of `Check` in the modules of these rooms."""

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import isabstract

from ragtide.drift import checks, robustness
from ragtide.drift.checks.engine import Check

_ROOMS = (checks, robustness)


@cache
def every_check() -> tuple[type[Check], ...]:
    """By module and name; each can be made without arguments."""
    return tuple(_find())


def _find() -> Iterator[type[Check]]:
    for room in _ROOMS:
        for module in sorted(one.name for one in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")):
            for found in vars(import_module(module)).values():
                is_check = isinstance(found, type) and issubclass(found, Check) and not isabstract(found)
                if is_check and found.__module__ == module:
                    yield found
