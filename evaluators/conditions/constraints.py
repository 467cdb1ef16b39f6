"""The older form of a condition: a list of constraints."""

from collections.abc import Sequence
from typing import Any

from ragtide.evaluators.conditions.condition import All, AnyOf, Condition, Contains, Finds
from ragtide.evaluators.conditions.patterns import Malformed, Patterns
from ragtide.evaluators.text.surrogates import replace_surrogates

REGEXP = "REGEXP:"
MOST = 1_000  # strings and regular expressions, those of inner lists too


def from_constraints(items: Sequence[Any]) -> Condition:
    """Read a list in which every item must hold.

    "REGEXP:..." is a regular expression. Of an inner list one item must hold.
    """
    patterns = Patterns()
    if sum(len(item) if isinstance(item, list | tuple) else 1 for item in items) > MOST:
        raise Malformed(f"more than {MOST:,} constraints")

    def one(item: Any, index: int) -> Condition:
        if not isinstance(item, str):
            raise Malformed(f"constraint {index}: neither a string nor a list of strings")
        if item.startswith(REGEXP):
            return Finds(patterns.compile(item[len(REGEXP) :], f"constraint {index}"), index, index + 1)
        return Contains(replace_surrogates(item), index, index + 1)

    def any_of(item: Any, index: int) -> Condition:
        if not isinstance(item, list | tuple):
            return one(item, index)
        if not item:
            raise Malformed(f"constraint {index}: an empty list, which nothing satisfies")
        return AnyOf(tuple(one(each, index) for each in item))

    return All(tuple(any_of(item, index) for index, item in enumerate(items)))
