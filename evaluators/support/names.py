"""Finds names in an answer: capital words within a sentence, in languages that capitalise nothing else."""

import re
from collections.abc import Iterator

WITHOUT_NAMES = frozenset({"de", "ja", "zh"})  # nouns are capitalised too, or nothing is
_WORD = re.compile(r" (?P<name>[^\W\d_a-z][\w\u2019'&-]*)")
_ASCII_WORD = re.compile(r" (?P<name>[A-Z][\w'&-]*)")  # the same in ASCII, where most texts are
_TITLE = 0.6  # share of capital words from which a line is a title, where every word is capitalised
_CAPITAL, _ASCII_CAPITAL = re.compile(r"\b[^\W\d_]"), re.compile(r"\b[A-Za-z]", re.ASCII)


def names_of(text: str, code: str) -> Iterator[tuple[int, str]]:
    """Yield start and word of the names in a sentence. The word that begins it is left out: anything may begin one."""
    if code in WITHOUT_NAMES:
        return
    found = []
    for match in (_ASCII_WORD if text.isascii() else _WORD).finditer(text):
        name = match["name"]
        if name[0].isupper() and _within(text, match.start()) and name not in ("I", "A"):
            found.append((match.start("name"), name))
    if found and not _is_title(text):
        yield from found


def _within(text: str, end: int) -> bool:
    """Whether a word ends there, without a colon, list mark or quotation mark behind: those begin sentences."""
    before = text[max(0, end - 2) : end]
    return before[-1:].isalnum() or (before[-1:] == "," and before[:1].isalnum())


def _is_title(text: str) -> bool:
    starts = (_ASCII_CAPITAL if text.isascii() else _CAPITAL).findall(text)
    return len(starts) > 2 and sum(map(str.isupper, starts)) > _TITLE * len(starts)


def initials_of(text: str) -> str:
    """Return the first letters of the capital words of a text, so that NATO is found in North Atlantic Treaty ..."""
    return "".join(letter for letter in _CAPITAL.findall(text) if letter.isupper())
