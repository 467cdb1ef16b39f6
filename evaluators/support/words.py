"""Splits texts into words that can be compared between answer and contexts, and tells their language.

A word is folded: lower case, without endings, so that inflected forms meet. Scripts without spaces give pairs of
characters instead.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise, product
from typing import Any

UNKNOWN = "unknown"
# Tokens that are no words: a word to split, a word that negates, the ends of a clause and a sentence.
RUN, NEGATION, CLAUSE, STOP = "\0", "\1", "\2", "\3"
MOSTLETTERS = 40  # of a word: the rest says nothing more
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_KANA, _HAN = re.compile("[\u3041-\u30ff]"), re.compile("[\u3400-\u9fff]")
_RUN = re.compile(f"[{_UNSPACED}]+")
LETTER = f"[^\\W\\d_{_UNSPACED}]"
WORD = re.compile(rf"{LETTER}+(?:['\u2019]{LETTER}+)*|[{_UNSPACED}]+")
_ENDS = ".!?;\n\u3002\uff01\uff1f\uff1b\u0964"
_CLAUSE_ENDS = ",:\uff0c\u3001\u060c"
_TOKEN = re.compile(rf"{WORD.pattern}|[.!?;,:](?=\s|$)|[{_ENDS[4:]}{_CLAUSE_ENDS[2:]}]")
# The same in ASCII, where most texts are: three times as fast.
_ASCII_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")
_ASCII_TOKEN = re.compile(r"[A-Za-z]++(?:'[A-Za-z]++)*+|[.!?;,:](?!\S)|\n")
ENDING = re.compile(rf"['\u2019]?{LETTER}*")  # the rest of a word
_ASCII_RUN = re.compile("[a-z]+")
SPACED_WORD = re.compile(r"[^\W\d_]+")
HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # of camel case, as in keys of records
# English endings, longest first. The stem keeps four letters or more.
_ENDINGS = ("ations", "ation", "ingly", "edly", "ment", "ing", "ied", "er", "ed", "ly")
_SHORTEST_STEM = 4
_SHORTEST_PLURAL = 3  # letters before an s
# Endings of other languages: in German and Dutch n and s, in others s behind a vowel, or vowels of Russian.
_GERMANIC = re.compile("[aeiouy]?[ns]?$")
_INFLECTED = re.compile("[aeiouy]?s?$|[\u0430\u0435\u0438\u0439\u043e\u0443\u044b\u044c\u044e\u044f]{1,2}$")
_LONGEST_STEM = 7  # letters of a word of another language
_MOST_FOLDS = 1 << 16
MIN_HITS = 2  # function words that tell the language
FEWEST_WORDS = 15  # words: with as many and hardly a function word, a text is in another language
_FEWEST = 0.06  # share of function words in running text of a known language; half of what lists have


@dataclass(frozen=True, slots=True)
class Language:
    """The words of a language that carry no content of their own, and those that steer the polarity of a clause."""

    code: str
    empty: frozenset[str]  # function words and words about the sources
    function: frozenset[str]
    source: frozenset[str]
    negation: frozenset[str]
    contrast: frozenset[str]
    affirm: frozenset[str]


# Parts of German compounds such as einundzwanzig.
GERMAN_ONES = ("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
GERMAN_TENS = ("zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")


@lru_cache(maxsize=1)
def languages() -> Mapping[str, Language]:
    """Read the languages by ISO 639 code. `unknown` holds the words of all of them that negate, and no others."""
    read = tomllib.loads((resources.files("ragtide.evaluators.support") / "words.toml").read_text("utf-8"))
    every = {}
    for code, lists in read.items():
        words = {name: frozenset(text.split()) for name, text in lists.items()}
        function = words["function"] | words["negation"] | words["contrast"]
        every[code] = Language(
            code,
            function | words["source"],
            function,
            *(words[name] for name in ("source", "negation", "contrast", "affirm")),
        )
    nothing: frozenset[str] = frozenset()
    every[UNKNOWN] = Language(UNKNOWN, *(nothing,) * 6)
    return every


@lru_cache(maxsize=1)
def months() -> Mapping[str, str]:
    """Return the names of months by language-free tokens: "marzo" is "#3"."""
    return {word: f"#{number}" for number, words in _quantity_lists("months").items() for word in words.split()}


@lru_cache(maxsize=16)
def number_words(code: str) -> frozenset[str]:
    """Return the words of numbers that are read in this language: they are compared as quantities."""
    lists = (*_quantity_lists("numbers").items(), *_quantity_lists("scales").items())
    every = frozenset(word for _, words in lists for word in words.split())
    if code == "de":
        every |= {f"{one}und{ten}" for one, ten in product(GERMAN_ONES, GERMAN_TENS)}
    return every & frozenset(_quantities()["english"].split()) if code == "en" else every


def _quantity_lists(name: str) -> Mapping[str, str]:
    lists: Mapping[str, str] = _quantities()[name]
    return lists


@lru_cache(maxsize=1)
def _quantities() -> Mapping[str, Any]:
    return tomllib.loads((resources.files("ragtide.evaluators.support") / "quantities.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def _languages_of_word() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for language in languages().values():
        for word in language.function:
            found.setdefault(word, []).append(language.code)
    return {word: tuple(codes) for word, codes in found.items()}


def is_letter(sign: str) -> bool:
    """Whether it is a letter of a script with spaces between words."""
    return sign.isalpha() and not _RUN.match(sign)


def raw_words(text: str) -> list[str]:
    """Return the words in order as they stand; a run of a script without spaces is one."""
    return (_ASCII_WORD if text.isascii() else WORD).findall(text)


def language_of_words(words: Sequence[str], beside: str = "") -> str:
    """Return the code of the language that most function words belong to, or `UNKNOWN`.

    Where two languages are as likely, the text beside, such as a context, decides. Japanese and
    Chinese are told by their script. A text in none of the languages has few function words of any: it is `UNKNOWN`.
    """
    unspaced = [] if all(map(str.isascii, words)) else [word for word in words if _RUN.match(word)]
    if 2 * len(unspaced) > len(words):
        letters = "".join(unspaced)
        kana, han = _KANA.search(letters), _HAN.search(letters)
        return "ja" if kana else "zh" if han else UNKNOWN
    hits = _hits(words)
    best = max(hits.values(), default=0)
    if best < MIN_HITS or (len(words) >= FEWEST_WORDS and best < _FEWEST * len(words)):
        return UNKNOWN
    likely = [code for code in hits if hits[code] >= best - max(1, best // 8)]
    if len(likely) == 1:
        return likely[0]
    more = _hits(raw_words(beside))
    return max(likely, key=lambda code: (more[code] + hits[code], hits[code]))


def script_of_words(words: Collection[str]) -> int:
    """Return a number for the script of most words: 0 Latin, -1 the scripts without spaces, -2 if there are none."""
    if words and all(map(str.isascii, words)):
        return 0
    scripts = Counter(
        0
        if word[0] < "\u02b0" or "\u1e00" <= word[0] < "\u1f00"
        else -1
        if _RUN.match(word)
        else 0xAC  # Hangul has many blocks
        if "\uac00" <= word[0] <= "\ud7a3"
        else ord(word[0]) >> 8
        for word in words
    )
    return max(scripts, key=scripts.__getitem__, default=-2)


def _hits(words: Iterable[str]) -> Counter[str]:
    """Count the function words of each language."""
    known, counts = _languages_of_word(), Counter(map(str.lower, words))
    hits: Counter[str] = Counter()
    for word in counts.keys() & known.keys():
        for code in known[word]:
            hits[code] += counts[word]
    return hits


def lower_in_place(text: str) -> str:
    """Return the text in lower case with every character at its place: one that becomes two stays as it is."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := sign.lower()) == 1 else sign for sign in text)


def letter_runs(lower: str) -> list[str]:
    """Return the runs of letters of a text in lower case."""
    return (_ASCII_RUN if lower.isascii() else SPACED_WORD).findall(lower)


def tokens(text: str, code: str) -> list[str]:
    """Return the text in order as it is compared: folded words, "" for a word without content, `NEGATION` for one that
    negates, `CLAUSE` and `STOP` where a clause or a sentence ends. A run of a script without spaces gives pairs of
    characters.
    """
    if text.isalpha() and text.isascii():  # one word
        folded = _folds(code)[text]
        return [folded] if folded != RUN else list(_parts(text, code))
    raw = (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text)
    found = list(map(_folds(code).__getitem__, raw))
    if RUN not in found:
        return found
    split: list[str] = []
    last = 0
    for _ in range(found.count(RUN)):
        at = found.index(RUN, last)
        split += found[last:at]
        split += _parts(raw[at], code)
        last = at + 1
    return split + found[last:]


class _Folds(dict[str, str]):
    """Folded words by the words as they stand. It starts anew when it is full."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_FOLDS:
            self.clear()
        folded = self[word] = _fold(word, self._code)
        return folded


@lru_cache(maxsize=32)
def _folds(code: str) -> _Folds:
    return _Folds(code)


def _fold(word: str, code: str) -> str:
    if word[0] in _ENDS:
        return STOP
    if word[0] in _CLAUSE_ENDS:
        return CLAUSE
    if _RUN.match(word) or HUMP.search(word):
        return RUN
    language = languages()[code]
    lower = word[:MOSTLETTERS].lower().replace("\u2019", "'")
    if lower in language.negation or (code == "en" and lower.endswith("n't")):
        return NEGATION
    if lower in language.empty or lower in number_words(code):
        return ""
    if month := months().get(lower):
        return month
    if code == "en":
        return _english_stem(lower)
    _, apostrophe, tail = lower.rpartition("'")  # l'eau, dell'acqua: the article goes
    if apostrophe and len(tail) > 1:
        lower = tail
        if lower in language.empty:
            return ""
    bare = "".join(letter for letter in unicodedata.normalize("NFKD", lower) if not unicodedata.combining(letter))
    stem = (_GERMANIC if code in ("de", "nl") else _INFLECTED).sub("", bare)
    return (stem if len(stem) >= _SHORTEST_PLURAL else bare)[:_LONGEST_STEM]


def _parts(word: str, code: str) -> Iterable[str]:
    """Split what stands together: camel case into words, a run of a script without spaces into pairs."""
    if _RUN.match(word):
        return _pairs(word, code)
    return _hump_parts(word, code)


@lru_cache(maxsize=1 << 14)
def _hump_parts(word: str, code: str) -> tuple[str, ...]:
    folded = (_folds(code)[part] for part in HUMP.sub(" ", word).split())
    return tuple("" if part == NEGATION else part for part in folded)  # NoReturn negates nothing


def _english_stem(lower: str) -> str:
    """Strip the plural, then another ending, then a last e or y: study, studies, studied and studying are one."""
    stem = lower.removesuffix("'s")
    for ending, least in (("ies", _SHORTEST_PLURAL), ("s", _SHORTEST_PLURAL)):
        if stem.endswith(ending) and not stem.endswith("ss") and len(stem) - len(ending) >= least:
            stem = stem[: -len(ending)]
            break
    for ending in _ENDINGS:
        if stem.endswith(ending) and len(stem) - len(ending) >= _SHORTEST_STEM:
            stem = stem[: -len(ending)]
            break
    return stem[:-1] if stem[-1:] in ("e", "y", "i") and len(stem) > _SHORTEST_STEM else stem


def _pairs(run: str, code: str) -> Iterator[str]:
    """Yield the pairs of characters of a run, "" for those with function words, as all hiragana are in Japanese."""
    language = languages()[code]
    for word in language.negation:
        yield from [NEGATION] * run.count(word)
    if len(run) == 1:
        yield "" if run in language.function else run
    for one, other in pairwise(run):
        kana = "\u3041" <= one <= "\u309f" and "\u3041" <= other <= "\u309f"
        yield "" if kana or one in language.function or other in language.function else one + other
