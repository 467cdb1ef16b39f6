"""The one sentence splitter: sentencex, without its empty, letterless and number-only items."""

import re

from evaluators.spec import Sentence
from evaluators.surrogates import replaced

_NEVER_SPLITS = re.compile(r"[^.!?\n\r\v\f\x1c-\x1f]*\Z", re.ASCII)  # for ASCII only: other scripts have their own ends
# sentencex takes a minute for 1 MB of opening quotes, less than a millisecond for a piece of them.
PIECE = 4_000  # characters
AHEAD = 200  # of what follows, so many characters tell whether a sentence ends
_LIST_NUMBER = re.compile(r"[\s|>*#(\[-]*\d{1,3}[.)\]]+\s*\Z")  # "3.", "| 2. ", "(4)": the head of what follows


def split(text: str) -> tuple[Sentence, ...]:
    """The sentences in order, stripped, each with at least one letter; `text[start:end]` is the sentence's text.

    A list number stays with its item ("3." and "Turn it on." are one sentence). Lone surrogates read as U+FFFD.
    """
    text = replaced(text)
    found: list[Sentence] = []
    head: int | None = None  # where the list number before this item starts
    for start, end in _items(text):
        item = text[start:end]
        if not any(map(str.isalpha, item)):
            head = start if _LIST_NUMBER.match(item) else head if item.isspace() else None
            continue
        first = start if head is None else head
        first += len(text[first:end]) - len(text[first:end].lstrip())
        last = start + len(item.rstrip())
        found.append(Sentence(text[first:last], first, last))
        head = None
    return tuple(found)


def _items(text: str) -> list[tuple[int, int]]:
    """What sentencex makes of the text, as offsets: of a long text piece by piece.

    A sentence that a piece cuts is begun anew with the next one; it stays whole if it is longer than a piece.
    """
    if text.isascii() and _NEVER_SPLITS.match(text):
        return [(0, len(text))] if text else []
    spans: list[tuple[int, int]] = []
    start = at = 0  # of the sentence, and of the piece
    while at < len(text):
        items = _items_of(text[at : at + PIECE])
        if at + PIECE < len(text):
            items = [item for item in items if item[1] <= PIECE - AHEAD]
            if not items:
                at += PIECE
                continue
        for _, end in items:
            spans.append((start, at + end))
            start = at + end
        at = start
    return spans


def _items_of(piece: str) -> list[tuple[int, int]]:
    from sentencex import segment  # a native library: loaded when there is something to split

    spans, position = [], 0
    for item in segment("en", piece):  # an unknown language code would stop the splitting; "en" knows all scripts' ends
        position = piece.index(item, position)
        spans.append((position, position + len(item)))
        position += len(item)
    return spans
