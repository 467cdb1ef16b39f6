"""JSON in texts that anybody may have written: read strictly, and never deeper than a stack can bear."""

import re
from typing import Any

import msgspec

from ragtide.evaluators.text.surrogates import replace_surrogates

DEEPEST = 500  # arrays and objects within each other
# A string without its end reaches to the end of the text, so that no quote is looked at twice.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{\]}]', re.DOTALL)


class NotJson(Exception):
    """The text is not JSON (RFC 8259); NaN and a lone surrogate are not, nor, where it is read, a number too large."""


class TooDeep(Exception):
    """Nested in more than `DEEPEST` levels: whether it is JSON was not looked at."""


def read(text: str) -> Any:
    """The value that the whole text says; of a name given twice, the last. Raises `NotJson` or `TooDeep`."""
    return _decode(text, Any)


def check(text: str) -> None:
    """As `read`, without making the value: many times faster. A number may be larger than a double holds."""
    _decode(text, msgspec.Raw)


def _decode(text: str, kind: Any) -> Any:
    if text.count("[") + text.count("{") > DEEPEST and depth(text) > DEEPEST:
        raise TooDeep
    try:
        return msgspec.json.decode(replace_surrogates(text), type=kind)
    except msgspec.DecodeError:
        raise NotJson from None


def depth(text: str) -> int:
    """The deepest level, or the first beyond `DEEPEST`."""
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
