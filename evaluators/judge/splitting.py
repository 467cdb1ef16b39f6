"""Splits long inputs into calls. Nothing is cut: every character is in some call."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from ragtide.evaluators.spec import Shared

PIECE = 12_000  # characters of a text that the judge takes apart: about 3,000 tokens
SOURCE = 24_000  # characters that it compares with
GROUP = 20  # items that it gives verdicts on in one call
GROUP_CHARACTERS = 8_000

Item = TypeVar("Item")


def pieces_of(text: str, most: int, shared: Shared) -> list[str]:
    """Split a text between sentences into pieces of at most so many characters. A longer sentence is split inside."""
    if len(text) <= most:
        return [text] if text.strip() else []
    ends = [sentence.start for sentence in shared.sentences(text)][1:]
    pieces, start, cut = [], 0, 0
    for end in (*ends, len(text)):
        if end - start > most and cut > start:
            pieces.append(text[start:cut])
            start = cut
        while end - start > most:
            pieces.append(text[start : start + most])
            start += most
        cut = end
    pieces.append(text[start:])
    return [piece for piece in pieces if piece.strip()]


def groups_of(items: Sequence[Item], sizes: Sequence[int], most: int, characters: int) -> Iterator[list[Item]]:
    """Group items in order: at most so many, of so many characters together. A larger one is alone."""
    group: list[Item] = []
    size = 0
    for item, own in zip(items, sizes, strict=True):
        if group and (len(group) == most or size + own > characters):
            yield group
            group, size = [], 0
        group.append(item)
        size += own
    if group:
        yield group
