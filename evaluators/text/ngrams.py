"""N-grams of token lists and what two texts share of them, in time linear in the texts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
Ngrams = Counter[tuple[str, ...]]


def ngrams(tokens: Sequence[str], order: int) -> Ngrams:
    """How often each run of `order` tokens occurs; empty where there are fewer tokens."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def most(counts: Iterable[Ngrams]) -> Ngrams:
    """Of each n-gram the greatest of its counts. The first counter becomes the result."""
    first, *others = counts
    for other in others:
        for gram, count in other.items():
            if count > first[gram]:
                first[gram] = count
    return first


def common(one: Counter[T], other: Counter[T]) -> int:
    """How many both hold, each counted as often as the poorer of them holds it."""
    hits = 0
    for each in one.keys() & other.keys():  # few are shared: `one & other` would look at all
        mine, theirs = one[each], other[each]
        hits += mine if mine < theirs else theirs
    return hits


def intersection(one: Counter[T], other: Counter[T]) -> Counter[T]:
    """How often both hold each, in time that the smaller takes: `one & other` looks at all of `one`."""
    return Counter({each: min(one[each], other[each]) for each in one.keys() & other.keys()})
