"""Find the insights that this room knows: each is a function in one of its modules, marked with what it reads."""

import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Generic, TypeVar

from ragtide.drift import insights
from ragtide.drift.insights.model import Insight

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class Finder(Generic[Data]):
    """A function that finds insights, and the type of what it reads: `PeriodData`, or `AppData` of every app."""

    reads: type[Data]
    find: Callable[[Data], Iterable[Insight]]

    def __call__(self, data: Data) -> Iterable[Insight]:
        """Find the insights in `data`."""
        return self.find(data)


def insight(reads: type[Data]) -> Callable[[Callable[[Data], Iterable[Insight]]], Finder[Data]]:
    """Make a function of a module of this room one that `run_insights` calls."""
    return lambda find: Finder(reads, find)


def finders(reads: type[Data]) -> list[Finder[Data]]:
    """Those of all modules of the room that read this, by module name."""
    modules = [import_module(f"{insights.__name__}.{found.name}") for found in pkgutil.iter_modules(insights.__path__)]
    values = [value for module in modules for value in vars(module).values()]
    return list(dict.fromkeys(one for one in values if isinstance(one, Finder) and one.reads is reads))
