"""An encoded run: where it stands and what it says."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ragtide.evaluators.leaks.byte_text import ByteText

_PRINTABLE = 0.95
_DIGITS = frozenset("0123456789abcdefABCDEFxu%&#;, \\")
_LIKE_PROSE = 0.6  # letters and blanks among what a run of numbers says


class Run(NamedTuple):
    """`text` is what the characters from `start` to `end` (offsets) say."""

    start: int
    end: int
    text: str


Find = Callable[[ByteText, int], Iterator[Run]]


@dataclass(frozen=True, slots=True)
class Encoding:
    """Finds runs that say at least so many characters; linear in the text's length.

    `names` are what a trace's categories call it; `shortest` is what a run says at least where nothing names it.
    """

    names: tuple[str, ...]
    shortest: int
    find: Find


def readable(data: bytes) -> str | None:
    """What the bytes say as UTF-8; None unless 95 % of it can be printed."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    printable = sum(character.isprintable() or character in "\t\r\n" for character in text)
    return text if text and printable >= _PRINTABLE * len(text) else None


def is_meant(text: str) -> bool:
    """Whether it is mostly letters and blanks, or digits of another encoding: numbers in a table decode to anything."""
    prose = sum(character.isalpha() or character == " " for character in text)
    return prose >= _LIKE_PROSE * len(text) or _DIGITS.issuperset(text)
