"""Entries of kafka.topics: a name, or ^ and a regular expression that matches a topic's whole name.

Expressions are RE2's, so that none can stall a worker.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from ragtide.evaluators.conditions.patterns import Malformed, Patterns

PATTERN_MARK = "^"
_INTERNAL_PREFIX = "__"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def fault(entry: str) -> str:
    """The fault of an entry; empty: it is valid."""
    if not entry.startswith(PATTERN_MARK):
        named = _NAME.fullmatch(entry)
        return "" if named else f"{entry!r} names no topic: letters, digits, '.', '_' and '-', or ^ and a pattern"
    try:
        _compiled(entry)
    except Malformed as error:
        return str(error)
    return ""


class TopicPattern:
    """Matches every topic of the entries; patterns leave out `excluded` and internal topics."""

    def __init__(self, entries: Iterable[str], excluded: Iterable[str]) -> None:
        entries = tuple(entries)
        self._names = {entry for entry in entries if not entry.startswith(PATTERN_MARK)}
        self._patterns = [_compiled(entry) for entry in entries if entry.startswith(PATTERN_MARK)]
        self._excluded = set(excluded)

    def match(self, topic: str) -> bool:
        """Whether the whole name matches; aiokafka dictates the method's name."""
        if topic in self._names:
            return True
        if topic in self._excluded or topic.startswith(_INTERNAL_PREFIX):
            return False
        return any(pattern.fullmatch(topic.encode()) for pattern in self._patterns)


@cache
def _compiled(entry: str) -> Any:
    return Patterns().compile(entry, repr(entry))
