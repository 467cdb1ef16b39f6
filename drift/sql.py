"""Literals for statements whose lists are too long for bound parameters. Every text goes through `text`."""

import hashlib
from collections.abc import Iterable


def text(value: str) -> str:
    """Make a string literal that reads back as `value`."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0")
    return f"'{escaped}'"


def array(items: Iterable[str], type_: str) -> str:
    """Make an array literal of SQL expressions, typed also if empty."""
    return f"CAST([{', '.join(items)}], 'Array({type_})')"


def texts(values: Iterable[str]) -> str:
    """Make a parenthesised list of string literals for IN; never empty."""
    return f"({', '.join(text(value) for value in values) or text('')})"


def digest(value: str) -> str:
    """Return the digest of a name that is too long for a statement; the server's is `digest_of`."""
    return hashlib.md5(value.encode(), usedforsecurity=False).hexdigest().upper()


def digest_of(column: str) -> str:
    """Expression: `digest` of the column's value. No index can use it."""
    return f"hex(MD5({column}))"
