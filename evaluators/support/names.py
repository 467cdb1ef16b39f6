"""Finds names in an answer.

Most languages capitalise names and nothing else within a sentence. German capitalises every noun, Japanese and Chinese
nothing. There a name is recognised by the words next to it or from a list, and any other name counts as a word.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib import resources

_WORD = re.compile(r" (?P<name>[^\W\d_a-z][\w\u2019'&-]*)")
_ASCII_WORD = re.compile(r" (?P<name>[A-Z][\w'&-]*)")  # the same in ASCII, where most texts are
_TITLE = 0.6  # share of capital words from which a line is a title, where every word is capitalised
_CAPITAL, _ASCII_CAPITAL = re.compile(r"\b[^\W\d_]"), re.compile(r"\b[A-Za-z]", re.ASCII)

_LETTERS = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"(?<![A-Za-z])[A-Z][A-Za-z]+")
_CAPITALS = re.compile("[A-ZÄÖÜ]")
_INCLUSIVE = ("In", "Innen")  # endings of KundIn, KundInnen
_HAN, _KATAKANA = "\u3005\u3400-\u4dbf\u4e00-\u9fff", "\u30a1-\u30fa\u30fc"
_WORKS = re.compile(r"[\u300a\u300e]([^\u300a-\u300f]{2,40})[\u300b\u300f]")  # titles of works, in their own brackets
_BEFORE_SUFFIX = re.compile(  # the whole run of one script before an honorific
    rf"(?<![お御ご{_HAN}{_KATAKANA}])(?:[{_HAN}]{{1,4}}|[{_KATAKANA}]{{2,20}})(?=さん|氏(?![{_HAN}]))"
)
_COMPANY = re.compile(rf"(?<=株式会社)(?:[{_HAN}]{{2,10}}|[{_KATAKANA}]{{2,20}})")
_DOTTED = re.compile(rf"(?<=\u00b7)[{_HAN}]{{2}}")  # of a name behind a dot

Names = Iterator[tuple[int, str]]  # start and text of each


def names_of(text: str, code: str) -> Names:
    """Yield start and text of the names in a sentence. The word that begins it is left out: anything may begin one."""
    recognised = _RECOGNISED.get(code)
    if recognised is not None:
        yield from recognised(text)
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


@lru_cache(maxsize=1)
def _lists() -> Mapping[str, Mapping[str, frozenset[str]]]:
    read = tomllib.loads((resources.files("ragtide.evaluators.support") / "names.toml").read_text("utf-8"))
    return {code: {name: frozenset(text.split()) for name, text in lists.items()} for code, lists in read.items()}


def _german(text: str) -> Names:
    """Yield words with two capital letters, first names, and family names behind them or behind a title."""
    lists, usual = _lists()["de"], _lists()["usual"]["words"]
    before_last, last, end = "", "", 0
    for match in _LETTERS.finditer(text):
        word, start = match[0], match.start()
        gap = text[end:start]
        if word[0].isupper() and (
            word in lists["first"]
            or (gap == " " and last in lists["first"] and before_last in lists["prepositions"])
            or (gap in (" ", ". ") and last in lists["titles"] and before_last not in lists["determiners"])
            or (len(_CAPITALS.findall(word)) > 1 and word not in usual and not word.endswith(_INCLUSIVE))
        ):
            yield start, word
        before_last, last, end = last, word, match.end()


def _japanese(text: str) -> Names:
    """Yield what stands before an honorific or names a company, places of a list, titles of works, and Latin names."""
    lists = _lists()["ja"]
    for match in _BEFORE_SUFFIX.finditer(text):
        if match[0][-1] not in lists["occupations"]:
            yield match.start(), match[0]
    yield from ((match.start(), match[0]) for match in _COMPANY.finditer(text))
    yield from _listed_or_marked(text, "ja")


def _chinese(text: str) -> Names:
    """Yield a family name with a title, with the given name between them, names behind a dot, and as in Japanese."""
    for match in _titled().finditer(text):
        yield match.start(), match["name"]
    yield from ((match.start(), match[0]) for match in _DOTTED.finditer(text))
    yield from _listed_or_marked(text, "zh")


def _listed_or_marked(text: str, code: str) -> Names:
    yield from ((match.start(), match[0]) for match in _places(code).finditer(text))
    yield from ((match.start(1), match[1]) for match in _WORKS.finditer(text))
    usual = _lists()["usual"]["words"]
    yield from ((match.start(), match[0]) for match in _LATIN.finditer(text) if match[0] not in usual)


@lru_cache(maxsize=2)
def _places(code: str) -> re.Pattern[str]:
    return re.compile("|".join(sorted(_lists()[code]["places"], key=len, reverse=True)))


@lru_cache(maxsize=1)
def _titled() -> re.Pattern[str]:
    lists = _lists()["zh"]
    families, titles = "".join(lists["families"]), "|".join(lists["titles"])
    return re.compile(f"(?P<name>[{families}][{_HAN}]{{0,2}}?)(?:{titles})")


_RECOGNISED: Mapping[str, Callable[[str], Names]] = {"de": _german, "ja": _japanese, "zh": _chinese}
