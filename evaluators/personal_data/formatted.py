"""A text as patterns want it: one byte a character, one blank and one hyphen for the many that Unicode has."""

from typing import NamedTuple

_BLANKS = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"
_HYPHENS = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d"  # language models like U+2011 in numbers
_WIDE = {0xFF10 + digit: str(digit) for digit in range(10)} | {0xFF20: "@", 0xFF0B: "+", 0xFF0E: "."}
_PLAIN = str.maketrans(_BLANKS + _HYPHENS, " " * len(_BLANKS) + "-" * len(_HYPHENS)) | _WIDE


class Span(NamedTuple):
    """Character offsets, end excluded."""

    start: int
    end: int


class Formatted(NamedTuple):
    """`text` and `data` have the original's length, so that offsets in all three are the same."""

    text: str
    data: bytes  # Latin-1; "?" for what it lacks, lone surrogates among it


def formatted(text: str) -> Formatted:
    """The text with plain blanks, hyphens and digits."""
    plain = text if text.isascii() else text.translate(_PLAIN)
    return Formatted(plain, plain.encode("latin-1", "replace"))


def stands_alone(text: str, start: int, end: int, joints: str = "") -> bool:
    """Whether the span is not part of something longer: no letter or digit touches it, nor one behind a joint."""
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    longer = before[-1:].isalnum() or (before[-1:] in joints and before[:-1].isalnum())
    return not (longer or after[:1].isalnum() or (after[:1] in joints and after[1:].isalnum()))
