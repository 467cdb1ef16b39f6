"""Untrusted bytes as text that neither controls a terminal nor forges a line."""

from ragtide.stream.terminal_text import plain

_BAR = "| "


def as_text(value: bytes, limit: int) -> str:
    """The first `limit` bytes on one line; what is not UTF-8, breaks the line, or cannot be seen stands as its escape.

    Escapes are Python's: `\\x1b`, `\\u202e`. How many bytes were left out stands at the end.
    """
    return plain(value[:limit].decode("utf-8", "backslashreplace")) + _left_out(value, limit)


def value_lines(value: bytes, limit: int) -> list[str]:
    """The same with its lines, a bar before each, so that none can pass for a line of the command."""
    shown = value[:limit].decode("utf-8", "backslashreplace").split("\n")
    return [*(f"{_BAR}{plain(line)}" for line in shown), *filter(None, [_left_out(value, limit).strip()])]


def _left_out(value: bytes, limit: int) -> str:
    left = len(value) - limit
    return f" [{left:,} more bytes]" if left > 0 else ""
