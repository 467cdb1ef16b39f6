"""Bytes of strangers as text that does nothing to a terminal."""

from stream.plain import plain

_KEPT = "\n\t"


def safe_text(value: bytes, limit: int) -> str:
    """The first `limit` bytes; what is not UTF-8, steers a terminal or cannot be seen stands as its escape.

    Escapes are Python's: `\\x1b`, `\\u202e`. How many bytes were left out is said at the end.
    """
    text = value[:limit].decode("utf-8", "backslashreplace")
    shown = plain(text, _KEPT)
    left = len(value) - limit
    return f"{shown}\n[{left:,} more bytes]" if left > 0 else shown
