"""Memoisation of functions of short texts: the same few words occur again and again."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

LONGEST = 24  # characters: no language's words are much longer
MOST = 20_000

Made = TypeVar("Made")


def memoize(make: Callable[[str], Made]) -> Callable[[str], Made]:
    """Cache a pure function for texts of up to `LONGEST` characters, the last `MOST` of them.

    Thread-safe. Results are shared and must not be changed.
    """
    of_short = lru_cache(maxsize=MOST)(make)

    @wraps(make)
    def memoized(text: str) -> Made:
        return of_short(text) if len(text) <= LONGEST else make(text)

    return memoized
