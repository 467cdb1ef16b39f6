"""Texts in a form for patterns: one byte per character, with plain blanks, hyphens, quotes and digits.

It also decides where words end, in scripts without blanks between words too.
"""

import re
from typing import NamedTuple

_BLANKS = (
    "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000\u200b\u200c\u200d\u2060\ufeff"
)
_HYPHENS = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d"  # language models like U+2011 in numbers
_QUOTES = {ord(quote): "'" for quote in "\u2018\u2019"} | {ord(quote): '"' for quote in "\u201c\u201d\u201e"}
# Full-width, Arabic, Persian and Devanagari digits.
_WIDE = {zero + digit: str(digit) for zero in (0xFF10, 0x660, 0x6F0, 0x966) for digit in range(10)} | {
    **{0xFF20: "@", 0xFF0B: "+", 0xFF0E: ".", 0xFF1A: ":", 0xFF08: "(", 0xFF09: ")"}
}
_PLAIN = str.maketrans(_BLANKS + _HYPHENS, " " * len(_BLANKS) + "-" * len(_HYPHENS)) | _QUOTES | _WIDE

# Scripts that write words, and words of other scripts, without blanks between them: Thai, Lao, Tibetan, Burmese, Khmer
# and neighbours; Chinese, Japanese and Korean with their punctuation.
_UNSPACED = "\u0e00-\u109f\u1780-\u17ff\u1950-\u1aaf\u2e80-\U0010ffff"
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
# Between two characters of one word, or at a joint such as a point, no script changes.
_CHANGE = re.compile(rf"(?<=[{_UNSPACED}])(?=[^\W{_UNSPACED}])|(?<=[^\W{_UNSPACED}])(?=[{_UNSPACED}])")


class Span(NamedTuple):
    """Character offsets, end excluded."""

    start: int
    end: int


class ByteText(NamedTuple):
    """`text` and `data` have the length of the original, so that offsets agree."""

    text: str
    data: bytes  # Latin-1; "?" for what it lacks, lone surrogates among it


def to_byte_text(text: str) -> ByteText:
    """Convert a text to plain blanks, hyphens, quotes and digits."""
    plain = text if text.isascii() else text.translate(_PLAIN)
    return ByteText(plain, plain.encode("latin-1", "replace"))


def stands_alone(text: str, start: int, end: int, joints: str = "") -> bool:
    """Whether no letter or digit touches the span, directly or behind a joint."""
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    longer = continues_word(before[-1:]) or (before[-1:] in joints and continues_word(before[:-1]))
    return not (longer or continues_word(after[:1]) or (after[:1] in joints and continues_word(after[1:])))


def continues_word(character: str) -> bool:
    """Whether a word or number beside this character continues with it."""
    return character.isalnum() and (character.isascii() or not _UNSPACED_CHARACTER.match(character))


def last_word(text: str) -> str:
    """Return the end of a text without blanks, from the last change between an unspaced script and another one."""
    return text if text.isascii() else _CHANGE.split(text)[-1]


def first_word(text: str) -> str:
    """Return the beginning of a text without blanks, up to the first such change."""
    return text if text.isascii() else _CHANGE.split(text, maxsplit=1)[0]


def spaced_length(text: str) -> int:
    """Return the number of characters before the first one of an unspaced script or its punctuation."""
    found = None if text.isascii() else _UNSPACED_CHARACTER.search(text)
    return found.start() if found else len(text)
