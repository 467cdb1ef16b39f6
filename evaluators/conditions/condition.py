"""What a condition is, whether a text satisfies it, and which of its terms are to blame."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evaluators.surrogates import replaced


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
    """A text to try conditions on, encoded once."""

    def __init__(self, text: str) -> None:
        self.text = replaced(text)
        self._data: bytes | None = None

    @property
    def data(self) -> bytes:
        """As UTF-8, which regular expressions work on."""
        if self._data is None:
            self._data = self.text.encode()
        return self._data


def holds(condition: Condition, subject: Subject) -> bool:
    """Whether the text satisfies the condition."""
    match condition:
        case Contains(needle):
            return needle in subject.text
        case Finds(pattern):
            return pattern.search(subject.data) is not None
        case Not(inner):
            return not holds(inner, subject)
        case All(conditions):
            return all(holds(each, subject) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, subject) for each in conditions)


def broken(condition: Condition, subject: Subject, wanted: bool = True) -> Iterator[Contains | Finds]:
    """The strings and expressions that make the condition come out other than `wanted`."""
    match condition:
        case Contains() | Finds():
            if holds(condition, subject) != wanted:
                yield condition
        case Not(inner):
            yield from broken(inner, subject, not wanted)
        case All(conditions) | AnyOf(conditions):
            if holds(condition, subject) != wanted:
                for each in conditions:
                    yield from broken(each, subject, wanted)
