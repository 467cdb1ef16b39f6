"""What a function made of short texts, remembered: the same few words come again and again."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

LONGEST = 24  # characters: no language's words are much longer
MOST = 20_000

Made = TypeVar("Made")


def memoize(make: Callable[[str], Made]) -> Callable[[str], Made]:
    """`make`, a pure function, called once for a text of up to `LONGEST` characters among the last `MOST`. Thread-safe;
    what it gives is shared and not changed.
    """
    of_short = lru_cache(maxsize=MOST)(make)

    @wraps(make)
    def made(text: str) -> Made:
        return of_short(text) if len(text) <= LONGEST else make(text)

    return made
