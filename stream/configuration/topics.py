"""Entries of kafka.topics: a name, or after ^ a regular expression that a topic's whole name matches."""

import re
from collections.abc import Iterable

MARK = "^"
_OF_BROKERS = r"__.*"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def fault(entry: str) -> str:
    """What is wrong with an entry; empty: nothing."""
    if not entry.startswith(MARK):
        named = _NAME.fullmatch(entry)
        return "" if named else f"{entry!r} names no topic: letters, digits, '.', '_' and '-', or ^ and a pattern"
    try:
        re.compile(entry)
    except re.error as error:
        return f"{entry!r} is no regular expression: {error.msg}"
    return ""


def pattern_of(entries: Iterable[str], excluded: Iterable[str]) -> re.Pattern[str]:
    """Matches the whole name of every topic that an entry stands for; patterns leave out `excluded` topics."""
    entries = tuple(entries)
    left_out = "|".join([*map(re.escape, filter(None, excluded)), _OF_BROKERS])
    names = [re.escape(entry) for entry in entries if not entry.startswith(MARK)]
    patterns = [rf"(?!(?:{left_out})\Z)(?:{entry})" for entry in entries if entry.startswith(MARK)]
    return re.compile(rf"(?:{'|'.join([*names, *patterns])})\Z")
