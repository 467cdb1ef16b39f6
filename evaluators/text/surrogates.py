"""Lone surrogates: JSON can contain them, UTF-8 and native libraries reject them."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """Replace each surrogate by U+FFFD. Length and offsets stay the same."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
