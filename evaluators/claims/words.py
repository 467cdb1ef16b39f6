"""Loads `words.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Unit:
    """An amount of a kind, in its base unit: a week is 604,800 seconds."""

    kind: str
    amount: float


@dataclass(frozen=True, slots=True)
class Words:
    """All words, in lower case."""

    units: Mapping[str, Unit]
    numbers: Mapping[str, int]
    months: Mapping[str, int]
    yes: frozenset[str]
    no: frozenset[str]
    asks: frozenset[str]
    denies: frozenset[str]
    limits: frozenset[str]
    version: frozenset[str]
    range: frozenset[str]
    apart: frozenset[str]
    degrees: frozenset[str]


@lru_cache(maxsize=1)
def words() -> Words:
    """Load the words once."""
    read = tomllib.loads((resources.files("ragtide.evaluators.claims") / "words.toml").read_text("utf-8"))
    units = {
        word: Unit(kind, float(amount))
        for kind, by_amount in read.pop("units").items()
        for amount, every in by_amount.items()
        for word in every
    }
    numbers, months = read.pop("numbers"), read.pop("months")
    return Words(units, numbers, months, **{name: frozenset(every) for name, every in read.items()})
