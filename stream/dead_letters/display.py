"""Bytes of strangers as text that does nothing to a terminal."""

_KEPT = "\n\t"


def safe_text(value: bytes, limit: int) -> str:
    """The first `limit` bytes; what is not UTF-8, steers a terminal or cannot be seen stands as its escape.

    Escapes are Python's: `\\x1b`, `\\u202e`. How many bytes were left out is said at the end.
    """
    text = value[:limit].decode("utf-8", "backslashreplace")
    shown = "".join(sign if sign.isprintable() or sign in _KEPT else _escaped(sign) for sign in text)
    left = len(value) - limit
    return f"{shown}\n[{left:,} more bytes]" if left > 0 else shown


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode()
