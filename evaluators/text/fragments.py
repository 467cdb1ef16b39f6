"""Extractive fragments: sequences of tokens that a text copies from its source, searched as strings."""

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

ABSENT = "\0"  # a token that the text lacks; between two parts of the source, so that no run crosses it


class TokenLetters(NamedTuple):
    """A text and its source with one character per token. Equal tokens are equal characters."""

    text: str
    source: str


def tokens_to_letters(tokens: Sequence[str], sources: Sequence[Sequence[str]]) -> TokenLetters:
    """Encode the text, and the concatenated parts of its source."""
    letters = {token: chr(place) for place, token in enumerate(dict.fromkeys(tokens), 1)}
    parts = ("".join(map(letters.get, source, repeat(ABSENT))) for source in sources)
    return TokenLetters("".join([letters[token] for token in tokens]), ABSENT.join(parts))


def fragments(text: str, source: str) -> list[int]:
    """Return the lengths of the fragments of Grusky et al. (2018), figure 3: from left to right the longest copied
    sequence.

    The worst-case time is the product of the lengths, at about 0.1 to 1 ns.
    """
    known = frozenset(source)
    lengths = []
    start = 0
    while start < len(text):
        length = _longest(text, start, source) if text[start] in known else 0
        if length:
            lengths.append(length)
        start += max(length, 1)
    return lengths


def _longest(text: str, start: int, source: str) -> int:
    """Return the length of the longest sequence at `start` that the source contains."""
    length, place = 0, -1
    while start + length < len(text):
        # No place before this one fits even the run so far.
        place = source.find(text[start : start + length + 1], place + 1)
        if place < 0:
            break
        length += 1
        while text[start + length : start + length + 1] == source[place + length : place + length + 1] != "":
            length += 1
    return length
