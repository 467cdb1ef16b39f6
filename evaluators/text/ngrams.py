"""N-grams of token lists and their overlap, in linear time."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
Ngrams = Counter[tuple[str, ...]]


def ngrams(tokens: Sequence[str], order: int) -> Ngrams:
    """Count each sequence of `order` tokens. Empty if there are fewer tokens."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def most(counts: Iterable[Ngrams]) -> Ngrams:
    """Return the maximum count of each n-gram. The first counter becomes the result."""
    first, *others = counts
    for other in others:
        for gram, count in other.items():
            if count > first[gram]:
                first[gram] = count
    return first


def common(one: Counter[T], other: Counter[T]) -> int:
    """Count the elements of both, each as often as in the counter that has fewer."""
    hits = 0
    for each in one.keys() & other.keys():  # few are shared: `one & other` would look at all
        mine, theirs = one[each], other[each]
        hits += mine if mine < theirs else theirs
    return hits


def intersection(one: Counter[T], other: Counter[T]) -> Counter[T]:
    """Return the minimum count of each, in the time of the smaller counter: `one & other` visits all of `one`."""
    return Counter({each: min(one[each], other[each]) for each in one.keys() & other.keys()})
