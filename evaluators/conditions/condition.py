"""What a condition is, whether a text satisfies it, and which of its terms are to blame."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ragtide.evaluators.text.surrogates import replace_surrogates


@dataclass(frozen=True, slots=True)
class Contains:
    """Holds where the text contains `needle`. `start` and `end` lie in the expression, or are an item's index."""

    needle: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Finds:
    """Holds where the regular expression is found."""

    pattern: Any  # a compiled re2 pattern
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Not:
    """Holds where the other does not."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class All:
    """Holds where each of them does."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Holds where one of them does."""

    conditions: tuple["Condition", ...]


Condition = Contains | Finds | Not | All | AnyOf


class Subject:
    """A text to try conditions on: encoded once, and searched once for each string and expression."""

    def __init__(self, text: str) -> None:
        self.text = replace_surrogates(text)
        self._data: bytes | None = None
        self._results: dict[Contains | Finds, bool] = {}

    @property
    def data(self) -> bytes:
        """As UTF-8, which regular expressions work on."""
        if self._data is None:
            self._data = self.text.encode()
        return self._data

    def has(self, term: Contains | Finds) -> bool:
        """Whether the string or the regular expression is found."""
        told = self._results.get(term)
        if told is None:
            found = term.needle in self.text if isinstance(term, Contains) else term.pattern.search(self.data)
            told = self._results[term] = bool(found)
        return told


def steps(condition: Condition) -> int:
    """The most work that a character of a text can make, in states of an automaton; a string counts as one."""
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
    """The strings and expressions that make the condition come out other than `wanted`."""
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
