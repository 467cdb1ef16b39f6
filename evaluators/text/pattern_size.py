"""Sizes of a JSON Schema's regular expressions: their cost grows with size times text length."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

LARGEST = 1 << 20  # bytes of all of them, compiled
SMALLEST = 1 << 8
DEFINITIONS = ("$defs", "definitions")  # count where something refers to them
# `^`, then single characters of which one may be repeated differently often, as in ^.{1,2000}$. Wherever in the text it
# is, the matcher is at one place up to that character and at one more for each character behind it, whatever the
# count: so it is as large as with `*`. It makes each state only once it gets there, which takes more: 60 ns a byte.
CHARACTER = (
    r"(?:[^\\.\[\](){}*+?|^$]|\.|\\[^\w]|\\[dDwWsSnrtfv]|\\p\{\w+\}"
    r"|\[\^?(?:\\.|[^\]\\\[])+\]|\((?:\?:)?(?:\.\|\\n|\\n\|\.)\))"
)
EXACTLY = rf"(?:{CHARACTER}(?:\{{\d+\}})?)*"
COUNTED_ONCE = re.compile(rf"((?:\(\?s\))?\^{EXACTLY}{CHARACTER})\{{\d+,\d*\}}({EXACTLY}\$?)")
STATES = 1 << 10  # as large as what takes that long
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class TooLarge(Exception):
    """The regular expressions have more than `LARGEST` bytes."""


def pattern_size(schema: Any) -> int:
    """Return the bytes of the compiled regular expressions of a valid schema, counted once for each reference to them.

    A recursive reference adds nothing: validators cache what a value satisfies. Raises `TooLarge`.
    """
    if not isinstance(schema, Mapping) or not any(True for _ in _patterns(schema)):
        return 0
    size = _PatternCounter(schema).size({name: each for name, each in schema.items() if name not in DEFINITIONS})
    if size > LARGEST:
        raise TooLarge(f"its regular expressions are too large, {LARGEST:,} bytes together at most (repeats count)")
    return size


class _PatternCounter:
    """Counts the sizes in one document, each place once."""

    def __init__(self, document: Any) -> None:
        import jsonschema_rs

        name = "urn:ragtide:counted"
        self._resolver = jsonschema_rs.Registry([(name, document)]).resolver(name)
        self._document = document
        self._of: dict[str, int] = {"#": 0}  # a reference to the whole leads back to where counting began

    def size(self, schema: Any) -> int:
        own = sum(map(_size, _patterns(schema)))
        return min(own + sum(map(self._size_of_reference, _references(schema))), 2 * LARGEST)

    def _size_of_reference(self, reference: str) -> int:
        if reference not in self._of:
            self._of[reference] = 0
            self._of[reference] = self.size(self._target(reference))
        return self._of[reference]

    def _target(self, reference: str) -> Any:
        """Return the target of a reference, or the whole document if only a `$id` in it identifies the target."""
        import jsonschema_rs

        try:
            return self._resolver.lookup(reference).contents
        except jsonschema_rs.ReferencingError:
            return self._document


def objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the schema and every object in it."""
    left = [schema]
    while left:
        here = left.pop()
        if isinstance(here, Mapping):
            yield here
            left += here.values()
        elif isinstance(here, list):
            left += here


def _references(schema: Any) -> Iterator[str]:
    for here in objects(schema):
        yield from (here[name] for name in REFERENCES if isinstance(here.get(name), str))


def _patterns(schema: Any) -> Iterator[str]:
    for here in objects(schema):
        if isinstance(pattern := here.get("pattern"), str):
            yield pattern
        if isinstance(patterns := here.get("patternProperties"), Mapping):
            yield from patterns


@lru_cache(maxsize=1_024)
def _size(pattern: str) -> int:
    """Return the bytes of patterns at a place. 0 if it is no pattern but a value that looks like one."""
    if not _compiles(pattern):
        return 0
    once = COUNTED_ONCE.fullmatch(pattern)
    return max(STATES, _compiled_size(f"{once[1]}*{once[2]}")) if once else _compiled_size(pattern)


def _compiled_size(pattern: str) -> int:
    """Return the bytes of the compiled expression, rounded up to a power of two."""
    size = SMALLEST
    while size <= LARGEST and not _compiles(pattern, size):
        size *= 2
    return size


def _compiles(pattern: str, size: int | None = None) -> bool:
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions(size_limit=size))
    except jsonschema_rs.ValidationError:
        return False
    return True
