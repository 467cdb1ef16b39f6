"""Finds names in an answer: capital words within a sentence, in languages that capitalise nothing else."""

import re
from collections.abc import Iterator

WITHOUT_NAMES = frozenset({"de", "ja", "zh"})  # nouns are capitalised too, or nothing is
_WORD = re.compile(r"[^\W\d_a-z][\w\u2019'&-]*")
_TITLE = 0.6  # share of capital words from which a line is a title, where every word is capitalised
_CAPITAL = re.compile(r"\b[^\W\d_]")


def names_of(text: str, code: str) -> Iterator[re.Match[str]]:
    """Yield the words of names in a sentence. The word that begins it is left out: anything may begin one."""
    if code in WITHOUT_NAMES:
        return
    found = [
        match
        for match in _WORD.finditer(text)
        if match.group()[0].isupper() and _within(text, match.start()) and match.group() not in ("I", "A")
    ]
    if found and not _is_title(text):
        yield from found


def _within(text: str, start: int) -> bool:
    """Whether a word stands before, without a colon, list mark or quotation mark between: those begin sentences."""
    if text[start - 1 : start] != " ":
        return False
    before = text[start - 3 : start - 1] if start > 2 else text[: max(0, start - 1)]
    return before[-1:].isalnum() or (before[-1:] == "," and before[:1].isalnum())


def _is_title(text: str) -> bool:
    starts = [start[0] for start in _CAPITAL.findall(text)]
    return len(starts) > 2 and sum(map(str.isupper, starts)) > _TITLE * len(starts)


def initials_of(text: str) -> str:
    """Return the first letters of the capital words of a text, so that NATO is found in North Atlantic Treaty ..."""
    return "".join(letter for letter in _CAPITAL.findall(text) if letter.isupper())
