"""JSON in untrusted texts: parsed strictly, with a depth limit."""

import re
from typing import Any

import msgspec

from ragtide.evaluators.text.surrogates import replace_surrogates

DEEPEST = 500  # arrays and objects within each other
# A string without its end reaches to the end of the text, so that no quote is looked at twice.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{\]}]', re.DOTALL)


class NotJson(Exception):
    """The text is not JSON (RFC 8259), or has NaN, a lone surrogate or, in `read`, a number too large for a double."""


class TooDeep(Exception):
    """Nested in more than `DEEPEST` levels. It was not parsed."""


def read(text: str) -> Any:
    """Parse the whole text. Of duplicate names the last counts. Raises `NotJson` or `TooDeep`."""
    return _decode(text, Any)


def check(text: str) -> None:
    """Check like `read`, without making the value: many times faster. Numbers may be too large for a double."""
    _decode(text, msgspec.Raw)


def _decode(text: str, kind: Any) -> Any:
    if text.count("[") + text.count("{") > DEEPEST and depth(text) > DEEPEST:
        raise TooDeep
    try:
        return msgspec.json.decode(replace_surrogates(text), type=kind)
    except msgspec.DecodeError:
        raise NotJson from None


def depth(text: str) -> int:
    """Return the maximum depth, or the first beyond `DEEPEST`."""
    level = deepest = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            level += 1
            deepest = max(deepest, level)
            if level > DEEPEST:
                break
        elif token[0] in "]}":
            level -= 1
    return deepest
