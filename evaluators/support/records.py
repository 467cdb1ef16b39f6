"""Reads facts of records in contexts, such as `"WiFi": "no"`, and finds the sentences that say otherwise.

A record is JSON, YAML, or lines of the form `key: value`. A key whose value is false or missing carries no claim that
the thing is there, though its words stand in the context.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ragtide.evaluators.support.polarity import is_negated
from ragtide.evaluators.support.words import Language

_VALUES = ("false", "null", "none", "no", "nan", "n/a", "true", "yes")
_WRITTEN = "|".join(form for value in _VALUES for form in (value, value.capitalize(), value.upper(), "NaN"))
_VALUE = re.compile(rf"""[:=]\s?["']?(?=[FNTYfnty])(?P<value>{_WRITTEN})["']?(?=\s{{0,20}}(?:[,}}\]\n]|$))""")
# It is matched backwards, from the value on.
_KEY = re.compile(r"""\s?["']?(?P<key>[\w-]{1,40}[^\W\d_])(?![\w-])""")
_BEFORE = 45  # characters in which a key stands
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|[_-]")
_ABSENT = frozenset({"null", "none", "nan", "n/a"})
_TRUE = frozenset({"true", "yes"})
_NEAR = 5  # words between which all words of a key must stand
_SHORTEST = 3  # letters of a word that tells a key from others
_GENERIC = frozenset({"for", "has", "the", "good", "and", "with"})
MOST_FACTS = 500  # of a trace: a record with more is a table


class Fact(NamedTuple):
    """A key with a value that is false or missing: its name in one word, and its own words by their stems."""

    name: str
    stems: tuple[str, ...]
    missing: bool


def facts_of(text: str) -> list[Fact]:
    """Return the keys of the text with a value that is false or missing. Words that several keys share are left out."""
    if ":" not in text and "=" not in text:
        return []
    found: dict[str, str] = {}
    for value in _VALUE.finditer(text):
        key = _KEY.match(text[max(0, value.start() - _BEFORE) : value.start()][::-1])
        if key:
            found[key["key"][::-1]] = value["value"].lower()
    if not found:
        return []
    parts = {key: _parts_of(key) for key in found}
    shared = Counter(one for each in parts.values() for one in set(each.stems))
    return [
        Fact(
            parts[key].name,
            tuple(one for one in parts[key].stems if shared[one] == 1 and one not in _GENERIC),
            value in _ABSENT,
        )
        for key, value in found.items()
        if value not in _TRUE
    ][:MOST_FACTS]


class _Key(NamedTuple):
    name: str
    stems: tuple[str, ...]


@lru_cache(maxsize=1 << 14)
def _parts_of(key: str) -> _Key:
    """Return the key in one word, and the stems of its words that are long enough to tell it from others."""
    stems = (stem(part) for part in _HUMP.split(key) if part)
    return _Key(_HUMP.sub("", key).lower(), tuple(one for one in stems if len(one) >= _SHORTEST))


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """Return the word in lower case without the ending of a plural or a participle."""
    lower = word.lower()
    return next(
        (lower[: -len(end)] for end in ("ing", "es", "s") if lower.endswith(end) and len(lower) - len(end) >= 3), lower
    )


def facts_named(facts: Sequence[Fact], text: str) -> list[Fact]:
    """Return the facts that the text may name."""
    run = text.lower().replace(" ", "").replace("-", "").replace(",", "")
    return [fact for fact in facts if fact.name in run or (fact.stems and fact.stems[0] in run)]


def contradictions(facts: Sequence[Fact], words: Sequence[str], language: Language) -> list[int]:
    """Return the places of the words of a sentence that claim a thing which one of these facts says is not there.

    Where the value is missing, a sentence that denies the thing is unsupported too.
    """
    lower = [word.lower().replace("\u2019", "'") for word in words]
    places: dict[str, int] = {}
    for place, word in enumerate(lower):
        places.setdefault(word, place)
        if place:
            places.setdefault(lower[place - 1] + word, place - 1)  # Wi-Fi, outdoor seating
    stems: dict[str, int] = {}
    for place, word in enumerate(words):
        if not (place and word[0].isupper()):  # Street is a name
            stems.setdefault(stem(word), place)
    found = []
    silent = any(word in language.source for word in lower)  # "there is no information on Wi-Fi" is right
    for fact in facts:
        at = places.get(fact.name)
        if at is None or (len(fact.stems) == 1 and lower[at] == fact.name and _is_name(words, at)):
            at = _place_of(fact.stems, stems) if fact.stems and fact.stems[0] in stems else None
        if at is not None:
            negated = is_negated(lower, at, language)
            if not negated or (fact.missing and not silent):
                found.append(at)
    return found


def _is_name(words: Sequence[str], at: int) -> bool:
    return bool(at) and words[at][0].isupper() and words[at][1:].islower()


def _place_of(parts: Sequence[str], stems: dict[str, int]) -> int | None:
    at = [stems[part] for part in parts if part in stems]
    return min(at) if at and len(at) == len(parts) and max(at) - min(at) < _NEAR else None
