"""The shared sentence splitter: sentencex, without empty, letterless and number-only items."""

import re
from bisect import bisect_left

from ragtide.evaluators.spec import Sentence
from ragtide.evaluators.text.surrogates import replace_surrogates

_NEVER_SPLITS = re.compile(r"[^.!?\n\r\v\f\x1c-\x1f]*\Z", re.ASCII)  # for ASCII only: other scripts have their own ends
# sentencex takes a minute for 1 MB of opening quotes, less than a millisecond for a piece of them.
PIECE = 4_000  # characters
AHEAD = 200  # of what follows, so many characters tell whether a sentence ends
# At each sign that ends a sentence without a blank behind it, sentencex reads on to the next blank or the end of the
# piece: a piece with many such signs is cut smaller. These are Unicode's sentence terminals beyond ASCII.
DENSE_PIECE = 500  # characters
DENSE = 400  # signs in a whole piece: sentences of fewer than ten characters
_ENDS = re.compile(
    "[\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837-\u083e\u0964\u0965\u104a\u104b\u1362-\u1368\u166e\u1735\u1736"
    "\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b5a-\u1b5f\u1b7d-\u1b7f\u1c3b\u1c3c\u1c7e\u1c7f\u2024\u203c\u203d"
    "\u2047-\u2049\u2e2e\u2e3c\u2e53\u2e54\u3002\ua4ff\ua60e\ua60f\ua6f3-\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f"
    "\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\ufe52-\ufe57\uff01\uff0e\uff1f\uff61\U00010a56-\U0001da88]"
)
# sentencex panics at a full stop behind a blank beyond ASCII behind a single capital: "Plan B\u00a0."
_PANICS = re.compile(r"([A-Z]\s*)[^\S\x00-\x7f](?=\.)")
_STOPPED_BLANK = re.compile(r"\.(?<=[^\S\x00-\x7f]\.)")  # looked for first: full stops are found faster than capitals
_LIST_NUMBER = re.compile(r"[\s|>*#(\[-]*\d{1,3}[.)\]]+\s*\Z")  # "3.", "| 2. ", "(4)": the head of what follows


def split(text: str) -> tuple[Sentence, ...]:
    """Return the sentences in order, stripped, each with a letter. `text[start:end]` is the text of the sentence.

    A list number stays with its item ("3." and "Turn it on." are one sentence). Lone surrogates become U+FFFD.
    """
    text = replace_surrogates(text)
    found: list[Sentence] = []
    head: int | None = None  # where the list number before this item starts
    for start, end in _items(text):
        item = text[start:end]
        if not any(map(str.isalpha, item)):
            head = start if _LIST_NUMBER.match(item) else head if item.isspace() else None
            continue
        if head is not None:
            start, item = head, text[head:end]
        stripped = item.strip()
        start += item.index(stripped)
        found.append(Sentence(stripped, start, start + len(stripped)))
        head = None
    return tuple(found)


def _items(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the items of sentencex, which reads a long text piece by piece.

    A sentence that a piece cuts starts again in the next piece. It stays whole even if it is longer than a piece.
    """
    if text.isascii() and _NEVER_SPLITS.match(text):
        return [(0, len(text))] if text else []
    spans: list[tuple[int, int]] = []
    ends = [] if len(text) <= DENSE or text.isascii() else [end.start() for end in _ENDS.finditer(text)]
    start = at = 0  # of the sentence, and of the piece
    while at < len(text):
        piece = text[at : at + PIECE]
        if len(ends) > DENSE and bisect_left(ends, at + PIECE) - bisect_left(ends, at) > DENSE:
            piece = piece[:DENSE_PIECE]
        items = _items_of(piece)
        if at + len(piece) < len(text):
            items = [item for item in items if item[1] <= len(piece) - AHEAD]
            if not items:
                at += len(piece)
                continue
        for _, end in items:
            spans.append((start, at + end))
            start = at + end
        at = start
    return spans


def _items_of(piece: str) -> list[tuple[int, int]]:
    from sentencex import segment  # a native library: loaded when there is something to split

    if not piece.isascii() and _STOPPED_BLANK.search(piece):
        piece = _PANICS.sub(r"\1 ", piece)
    spans, position = [], 0
    for item in segment("en", piece):  # an unknown language code would stop the splitting; "en" knows all scripts' ends
        position = piece.index(item, position)
        spans.append((position, position + len(item)))
        position += len(item)
    return spans
