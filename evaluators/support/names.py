"""Finds names in an answer.

Most languages capitalise names and nothing else within a sentence. German capitalises every noun, Japanese and Chinese
nothing: there a name is told by what stands beside it, such as a title, and one without such a neighbour is not found.
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

_NOUN = re.compile(r"[^\W\d_]+")
_MARKED = re.compile(r"\b[^\W\d_a-z]+[a-zß-ÿ]*[A-ZÄÖÜ]\w*")  # two capital letters: BMW, BioNTech
_HAN, _KATAKANA = "\u3005\u3400-\u4dbf\u4e00-\u9fff", "\u30a1-\u30fa\u30fc"
_KATAKANA_RUN = rf"[{_KATAKANA}]{{2,}}"
_LATIN = re.compile(r"(?<![A-Za-z])[A-Z][A-Za-z]+")
_WORKS = re.compile(r"[\u300a\u300e]([^\u300a-\u300f]{2,40})[\u300b\u300f]")  # titles of works, in their own brackets
_DOTTED = re.compile(rf"[{_HAN}{_KATAKANA}]{{2,}}(?:[\u00b7\u30fb][{_HAN}{_KATAKANA}]{{2,}})+")
_PART = 2  # characters of a part of a dotted Chinese name where the words beside it cannot be told from it

Names = Iterator[tuple[int, str]]  # start and text of each


def names_of(text: str, code: str) -> Names:
    """Yield start and text of the names in a sentence. The word that begins it is left out: anything may begin one."""
    beside = _BESIDE.get(code)
    if beside is not None:
        yield from dict.fromkeys(beside(text))
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
def _lists() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    read = tomllib.loads((resources.files("ragtide.evaluators.support") / "names.toml").read_text("utf-8"))
    return {code: {name: tuple(text.split()) for name, text in lists.items()} for code, lists in read.items()}


def _german(text: str) -> Names:
    """Yield words with two capital letters, and of two nouns side by side the second, or both behind a preposition."""
    yield from ((match.start(), match[0]) for match in _MARKED.finditer(text))
    lists = _lists()["de"]
    words = list(_NOUN.finditer(text))
    for i in range(1, len(words) - 1):
        first, second = words[i], words[i + 1]
        gap = text[first.end() : second.start()]
        lower = first[0].lower()
        is_title = lower in lists["titles"]
        if (
            first[0][0].isupper()
            and second[0][0].isupper()
            and (gap == " " or (gap == ". " and is_title))
            and _within(text, first.start() - 1)
            and {lower, second[0].lower()}.isdisjoint(lists["measures"])
        ):
            if not is_title and words[i - 1][0].lower() in lists["before"]:
                yield first.start(), first[0]
            yield second.start(), second[0]


def _japanese(text: str) -> Names:
    """Yield names before an honorific, at a company's form, before a kind of place, and dotted ones."""
    lists = _lists()["ja"]
    alone = rf"(?<![お御ご{_HAN}{_KATAKANA}])"
    for match in _pattern("ja", "honorifics", rf"{alone}([{_HAN}]{{1,4}}|{_KATAKANA_RUN})").finditer(text):
        if match[1] not in lists["persons"]:
            yield match.start(), match[1]
    [company] = lists["company"]
    run = f"([{_HAN}]{{2,}}|{_KATAKANA_RUN})"
    for match in re.finditer(f"{run}?{company}{run}?", text):
        yield from ((match.start(i), match[i]) for i in (1, 2) if match[i])
    for match in _pattern("ja", "places", rf"(?<![{_HAN}])([{_HAN}]{{2,4}}?)", rf"(?![{_HAN}])").finditer(text):
        if not match[1].startswith(lists["pointing"]) and not match[0].endswith(lists["common"]):
            yield match.start(), match[1]
    yield from _of_any_script(text)


def _chinese(text: str) -> Names:
    """Yield family and given names before a title, two characters before a kind of place, and dotted names."""
    lists = _lists()["zh"]
    families = "".join(lists["families"])
    for match in _pattern("zh", "titles", rf"([{_HAN}]{{2,3}}?)").finditer(text):
        name = match[1]
        while len(name) >= _PART and name[0] not in families:
            name = name[1:]
        if len(name) >= _PART and not name.startswith(lists["persons"]):
            yield match.end(1) - len(name), name
    for match in _pattern("zh", "places", rf"([{_HAN}]{{2}})").finditer(text):
        if not set(match[1]).intersection(lists["pointing"]) and not match[0].endswith(lists["common"]):
            yield match.start(), match[1]
    yield from _of_any_script(text)


def _of_any_script(text: str) -> Names:
    """Yield names in Latin letters, titles of works in their brackets, and the parts of dotted names."""
    yield from ((match.start(), match[0]) for match in _LATIN.finditer(text))
    yield from ((match.start(1), match[1]) for match in _WORKS.finditer(text))
    for match in _DOTTED.finditer(text):
        parts = re.split("[\u00b7\u30fb]", match[0])
        start = match.start()
        for i, part in enumerate(parts):
            is_katakana = re.fullmatch(f"[{_KATAKANA}]+", part) is not None
            kept = part if is_katakana or 0 < i < len(parts) - 1 else part[:_PART] if i else part[-_PART:]
            yield start + (0 if i else len(part) - len(kept)), kept
            start += len(part) + 1


@lru_cache(maxsize=8)
def _pattern(code: str, kind: str, before: str, behind: str = "") -> re.Pattern[str]:
    """Compile what finds a word of this list behind a name, the longest word first."""
    words = sorted(_lists()[code][kind], key=len, reverse=True)
    return re.compile(f"{before}(?:{'|'.join(map(re.escape, words))}){behind}")


_BESIDE: Mapping[str, Callable[[str], Names]] = {"de": _german, "ja": _japanese, "zh": _chinese}
