"""An encoded sequence: its place and its decoded text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ragtide.evaluators.leaks.byte_text import ByteText

_PRINTABLE = 0.95
_LIKE_PROSE = 0.6  # share of letters and blanks
# Numbers, addresses, and the digits of other encodings.
_SIGNS = frozenset("+-()./:,@_#%&;\\ ")


class Run(NamedTuple):
    """`text` is decoded from the characters at [start, end)."""

    start: int
    end: int
    text: str


Find = Callable[[ByteText, int], Iterator[Run]]


@dataclass(frozen=True, slots=True)
class Encoding:
    """Finds sequences that decode to at least so many characters, in linear time.

    `names` are its names in categories of traces. `shortest` is the minimum length of a decoded text if no category
    names it. `like_numbers`: tables of numbers look like it; unless a category names it, `is_plausible` must hold.
    """

    names: tuple[str, ...]
    shortest: int
    find: Find
    like_numbers: bool = False


def readable(data: bytes) -> str | None:
    """Decode bytes as UTF-8. None unless 95 % of the characters can be printed."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    printable = sum(character.isprintable() or character in "\t\r\n" for character in text)
    return text if text and printable >= _PRINTABLE * len(text) else None


def is_plausible(text: str) -> bool:
    """Whether the text is mostly letters and blanks, or only letters, digits and signs of numbers and addresses.

    Numbers in a table decode to anything.
    """
    prose = sum(character.isalpha() or character == " " for character in text)
    return prose >= _LIKE_PROSE * len(text) or all(character.isalnum() or character in _SIGNS for character in text)
