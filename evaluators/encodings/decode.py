"""Replaces encoded sequences in a text by their decoded text."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from ragtide.evaluators.encodings import base16, base32, base64, character_codes, percent, rot13
from ragtide.evaluators.encodings.run import Encoding, Run, is_plausible
from ragtide.evaluators.leaks.byte_text import Span, to_byte_text

DEPTH = 3  # encodings within encodings; each makes the text shorter, so that all together stay linear
_SHORTEST_NAMED = {"url": 1, "rot13": 1}
_SHORTEST = 4  # what a run says at least where the trace names its encoding

_WORD = re.compile(r"[^\W_]+")
_EVERYDAY = frozenset({"url", "percent", "ascii", "binary"})  # "binary classification" names no encoding

# The surest first, after those that a category names: what one has decoded is not another's.
_ENCODINGS: tuple[Encoding, ...] = tuple(
    module.ENCODING for module in (percent, character_codes, base16, base32, base64, rot13)
)
NAMES: tuple[str, ...] = tuple(encoding.names[0] for encoding in _ENCODINGS)


class Piece(NamedTuple):
    """An encoded sequence: its place in the original, and that of its decoded text."""

    encoding: str
    original: Span
    decoded: Span


class DecodedText(NamedTuple):
    """The text with every sequence decoded. `pieces` is empty if there were none."""

    text: str
    pieces: tuple[Piece, ...]

    def original(self, start: int, end: int) -> Span:
        """Map offsets of the decoded text to the original. Within a sequence they cover all of it."""
        return Span(self._original(start, 0), self._original(max(end - 1, start), 1))

    def _original(self, position: int, side: int) -> int:
        index = bisect_right(self.pieces, position, key=lambda piece: piece.decoded.start) - 1
        if index < 0:
            return position + side
        piece = self.pieces[index]
        if position < piece.decoded.end:
            return piece.original[side]
        return position - piece.decoded.end + piece.original.end + side


def encodings_in(categories: Iterable[str]) -> frozenset[str]:
    """Return the encodings that categories of a trace name (base64, "Base64 attack"), by their first names."""
    names = [f"-{'-'.join(_WORD.findall(category.lower()))}-" for category in categories]
    return frozenset(each.names[0] for each in _ENCODINGS if any(_is_named(name, names) for name in each.names))


def _is_named(name: str, names: Iterable[str]) -> bool:
    if name in _EVERYDAY:
        return any(
            each in (f"-{name}-", f"-{name}-attack-", f"-{name}-encoded-", f"-{name}-encoding-") for each in names
        )
    return any(f"-{name}-" in each for each in names)


def decode_text(text: str, expected: Collection[str] = (), depth: int = DEPTH) -> DecodedText:
    """Decode long encoded sequences in the text, and short ones too if their encoding is `expected`."""
    runs = _runs(text, expected)
    parts: list[str] = []
    pieces: list[Piece] = []
    position = length = 0
    for name, run in runs:
        decoded = decode_text(run.text, expected, depth - 1).text if depth > 1 else run.text
        parts += (text[position : run.start], decoded)
        start = length + run.start - position
        length = start + len(decoded)
        position = run.end
        pieces.append(Piece(name, Span(run.start, run.end), Span(start, length)))
    return DecodedText("".join((*parts, text[position:])), tuple(pieces))


def decode_layers(text: str, expected: Collection[str] = ()) -> Iterator[DecodedText]:
    """Yield the text as written, then with one encoding removed, with two, ... until nothing changes.

    Plain text that looks encoded is thus in one layer, and text in an encoding within another in a later one.
    """
    layer = DecodedText(text, ())
    yield layer
    for depth in range(1, DEPTH + 1):
        decoded = decode_text(text, expected, depth)
        if decoded.text == layer.text:
            return
        layer = decoded
        yield layer


def _runs(text: str, expected: Collection[str]) -> list[tuple[str, Run]]:
    """Find the sequences of all encodings, in order, without overlaps."""
    shape = to_byte_text(text)
    taken = bytearray(len(text))
    runs: list[tuple[str, Run]] = []
    for encoding in sorted(_ENCODINGS, key=lambda each: each.names[0] not in expected):
        name = encoding.names[0]
        named = name in expected
        shortest = _SHORTEST_NAMED.get(name, _SHORTEST) if named else encoding.shortest
        for run in encoding.find(shape, shortest):
            if not named and encoding.like_numbers and not is_plausible(run.text):
                continue
            if 1 not in taken[run.start : run.end]:
                taken[run.start : run.end] = b"\x01" * (run.end - run.start)
                runs.append((name, run))
    return sorted(runs, key=lambda found: found[1].start)
