"""Values that a name stands before: `name = value`, `"name": "value"`, "the name is value"."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from evaluators.leaks.formatted import Formatted
from evaluators.leaks.patterns import compiled

SIGN = r"[\"'`*\])]{0,3}\s{0,4}(?::=|=>|==?|:|\|)\s{0,4}"
QUOTED = r"\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|`([^`\n]{1,200})`"
BARE = r"([^\s\"'`<>,;|]{4,200})"
IS = (
    r"\b[^\n.:;=?!]{0,48}?(?:'s|\b(?:is|was|are|ist|est|es|(?:set|reset|changed) to)(?: now)?:?) {1,2}"
    rf"(?:{QUOTED}|{BARE})"
)
_QUOTES = "\"'`"
_CLOSING = ".:)]}"  # of the sentence or the call around a bare value


class Assigned(NamedTuple):
    """A value, where it stands, whether in quotes, and the match that found it."""

    value: str
    start: int
    end: int
    quoted: bool
    match: Any


def assigned(shape: Formatted, pattern: str) -> Iterator[Assigned]:
    """Each match of the pattern; its last groups are the value's."""
    text = shape.text
    for match in compiled(pattern).finditer(shape.data):
        start, end = match.span(match.lastindex)
        quoted = text[start - 1] in _QUOTES
        while not quoted and end > start and text[end - 1] in _CLOSING:
            end -= 1
        if end > start:
            yield Assigned(text[start:end], start, end, quoted, match)
