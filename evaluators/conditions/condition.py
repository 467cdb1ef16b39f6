"""Conditions: types, evaluation on a text, and the terms that fail."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ragtide.evaluators.text.surrogates import replace_surrogates


@dataclass(frozen=True, slots=True)
class Contains:
    """True if the text contains `needle`. `start` and `end` are offsets in the expression, or the index of an item."""

    needle: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Finds:
    """True if the regular expression matches anywhere."""

    pattern: Any  # a compiled re2 pattern
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Not:
    """True if the inner condition is not."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class All:
    """True if all inner conditions are."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True if any inner condition is."""

    conditions: tuple["Condition", ...]


Condition = Contains | Finds | Not | All | AnyOf


class Subject:
    """A text to evaluate conditions on, or several. Each is encoded once, and searched once for each term."""

    def __init__(self, *texts: str) -> None:
        self._texts = tuple(map(replace_surrogates, texts))
        self._data: tuple[bytes, ...] | None = None
        self._results: dict[Contains | Finds, bool] = {}

    @property
    def size_bytes(self) -> int:
        """Size of the texts as UTF-8."""
        return sum(map(len, self._encoded()))

    def has(self, term: Contains | Finds) -> bool:
        """Whether the term is found in one of the texts."""
        result = self._results.get(term)
        if result is None:
            result = self._results[term] = self._find(term)
        return result

    def _find(self, term: Contains | Finds) -> bool:
        if isinstance(term, Contains):
            return any(term.needle in text for text in self._texts)
        return any(term.pattern.search(data) for data in self._encoded())

    def _encoded(self) -> tuple[bytes, ...]:
        if self._data is None:
            self._data = tuple(text.encode() for text in self._texts)
        return self._data


def steps(condition: Condition) -> int:
    """Return the maximum work per character of a text, in automaton states. A string counts as one."""
    match condition:
        case Contains():
            return 1
        case Finds(pattern):
            return int(pattern.programsize)
        case Not(inner):
            return steps(inner)
        case All(conditions) | AnyOf(conditions):
            return sum(map(steps, conditions))


def holds(condition: Condition, subject: Subject) -> bool:
    """Whether the text satisfies the condition."""
    match condition:
        case Contains() | Finds():
            return subject.has(condition)
        case Not(inner):
            return not holds(inner, subject)
        case All(conditions):
            return all(holds(each, subject) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, subject) for each in conditions)


def unmet_terms(condition: Condition, subject: Subject, wanted: bool = True) -> Iterator[Contains | Finds]:
    """Yield the terms that keep the condition from being `wanted`."""
    match condition:
        case Contains() | Finds():
            if holds(condition, subject) != wanted:
                yield condition
        case Not(inner):
            yield from unmet_terms(inner, subject, not wanted)
        case All(conditions) | AnyOf(conditions):
            if holds(condition, subject) != wanted:
                for each in conditions:
                    yield from unmet_terms(each, subject, wanted)
