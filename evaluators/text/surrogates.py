"""Lone surrogates: JSON can carry them, UTF-8 and every native library here refuse them."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD for each surrogate: same length, same offsets, and it can be encoded."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
