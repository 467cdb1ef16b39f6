"""Make untrusted text, such as the name of an application, safe for a terminal and for log lines."""

import json
import re
from collections.abc import Callable
from typing import Any

_BEYOND_ASCII = re.compile(r"[^\x20-\x7e]")


def plain(text: str, allowed: str = "") -> str:
    """Replace what steers a terminal, breaks a line or cannot be seen by Python's escape: `\\x1b`, `\\n`, `\\u202e`.

    That is all that `str.isprintable` refuses: controls, format characters (bidirectional marks, zero width), line
    separators, surrogates, private and unassigned code points. Characters of `kept` stay.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in allowed else _escaped(sign) for sign in text)


def plain_json(value: Any, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    """Encode `value` as JSON that is safe for a terminal, and parses to the same value.

    Visible characters stand as they are, all others as JSON's escapes.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=default)
    return _BEYOND_ASCII.sub(_json_escaped, text)


def plain_toml(text: str) -> str:
    """Quote `text` as TOML that is safe for a terminal, and parses to the same text."""
    return _BEYOND_ASCII.sub(_toml_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode()


def _json_escaped(found: re.Match[str]) -> str:
    """The encoder has escaped what is below a space; a line's end stands between values."""
    sign = found[0]
    return sign if sign == "\n" or sign.isprintable() else json.dumps(sign)[1:-1]


def _toml_escaped(found: re.Match[str]) -> str:
    """TOML has one escape for a code point beyond the first plane, where JSON has two."""
    sign = found[0]
    return sign if sign.isprintable() else f"\\u{ord(sign):04x}" if ord(sign) < 1 << 16 else f"\\U{ord(sign):08x}"
