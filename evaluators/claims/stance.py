"""Detects by rules whether an answer says yes or no."""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from ragtide.evaluators.claims.words import words

_FIRST = re.compile(r"\W*([^\W\d_]+)(?=[\s,.:;!?\u2013\u2014]|\Z)")
_SHORT = "n['\u2019]t\\b"  # isn't


class _Patterns(NamedTuple):
    denial: re.Pattern[str]
    clause: re.Pattern[str]


def stance_of(question: str, opening: str) -> Literal["yes", "no", ""]:
    """Return what the first sentence of an answer says, or "".

    Its first word decides. Otherwise it is no if the question is one of yes or no, and the sentence has a negation
    outside of clauses that only say when.
    """
    known, first = words(), _first(opening)
    if first in known.yes:
        return "yes"
    if first in known.no:
        return "no"
    patterns = _patterns()
    if _first(question) in known.asks and patterns.denial.search(patterns.clause.sub("", opening)):
        return "no"
    return ""


def _first(text: str) -> str:
    found = _FIRST.match(text)
    return found[1].casefold() if found else ""


@lru_cache(maxsize=1)
def _patterns() -> _Patterns:
    denies, limits = ("|".join(sorted(map(re.escape, some))) for some in (words().denies, words().limits))
    return _Patterns(
        re.compile(rf"\b(?:{denies})\b|{_SHORT}", re.IGNORECASE),
        re.compile(rf"\b(?:{limits})\b[^,.;:]*", re.IGNORECASE),
    )
