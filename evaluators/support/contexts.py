"""Indexes the contexts of a trace by the words of its answer."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from ragtide.evaluators.support.words import NEGATION, STOP, tokens

MOST_WORDS = 24  # of a segment: longer sentences and tables are cut
NOT_KNOWN = -1  # negations of a piece of a sentence
MOST_PLACES = 24  # segments that are kept for a word
_DATE = re.compile(r"\b\d{4}-(\d{1,2})-\d{1,2}\b|\b(\d{1,2})[./](\d{1,2})[./]\d{2,4}\b")


class Segments(NamedTuple):
    """The sentences of a text as sets of folded words, with the number of negations of each."""

    words: tuple[frozenset[str], ...]
    negations: tuple[int, ...]


@lru_cache(maxsize=32)
def segments_by(code: str) -> Callable[[str], Segments]:
    """Return the function that cuts a text of this language: `Shared.once` keeps its results."""
    return lambda text: segments_of(text, code)


def segments_of(text: str, code: str) -> Segments:
    """Cut a text into sentences, and those into pieces of `MOST_WORDS` words with content."""
    found = tokens(text, code)
    words: list[frozenset[str]] = []
    negations: list[int] = []
    start = 0
    for _ in range(found.count(STOP) + 1):
        try:
            end = found.index(STOP, start)
        except ValueError:
            end = len(found)
        sentence = found[start:end]
        piece = [one for one in sentence if one > STOP]
        if len(piece) <= MOST_WORDS:
            if piece:
                words.append(frozenset(piece))
                negations.append(sentence.count(NEGATION))
        else:
            for first in range(0, len(piece), MOST_WORDS):
                words.append(frozenset(piece[first : first + MOST_WORDS]))
                negations.append(NOT_KNOWN)
        start = end + 1
    return Segments(tuple(words), tuple(negations))


def months_of(text: str) -> Iterator[str]:
    """Yield the months of dates in digits, as the names of months are folded. A day may be read as one."""
    for match in _DATE.finditer(text):
        yield from (f"#{int(part)}" for part in match.groups() if part and 1 <= int(part) <= 12)


class Places:
    """Where the words of an answer stand in the contexts: by word the numbers of its segments."""

    def __init__(self, wanted: Collection[str], texts: Sequence[Segments]) -> None:
        every = frozenset(wanted)
        self.negations: list[int] = []
        self.sizes: list[int] = []  # words with content of each segment
        self.text_of: list[int] = []
        self._places: dict[str, list[int]] = {}
        places = self._places
        number = 0
        for text, segments in enumerate(texts):
            for words, negations in zip(segments.words, segments.negations, strict=True):
                for word in every & words:
                    known = places.get(word)
                    if known is None:
                        places[word] = [number]
                    elif len(known) < MOST_PLACES:
                        known.append(number)
                self.negations.append(negations)
                self.sizes.append(len(words))
                self.text_of.append(text)
                number += 1
        self.negates = any(count > 0 for count in self.negations)

    @cached_property
    def _sets(self) -> dict[str, frozenset[int]]:
        return {word: frozenset(places) for word, places in self._places.items()}

    def add(self, words: Iterable[str]) -> None:
        """Add words that stand in no segment."""
        for word in words:
            self._places.setdefault(word, [])

    @property
    def words(self) -> KeysView[str]:
        """The words of the answer that stand in the contexts."""
        return self._places.keys()

    def apart(self, pairs: Iterable[tuple[str, str]]) -> int:
        """Count the pairs of words that no segment has both of."""
        known, nowhere = self._sets.get, frozenset[int]()
        return sum([known(one, nowhere).isdisjoint(known(other, nowhere)) for one, other in pairs])

    def count_in(self, segment: int, words: Iterable[str]) -> int:
        """Count the words that stand in the segment."""
        return sum(segment in self._places.get(word, ()) for word in words)

    def nearest(self, weights: Mapping[str, float]) -> tuple[int, float]:
        """Return the segment that has most of the words by their weights, and this weight; (-1, 0) if none has any."""
        votes: dict[int, float] = {}
        known, voted = self._places, votes.get
        for word, weight in weights.items():
            for place in known.get(word, ()):
                votes[place] = voted(place, 0.0) + weight
        if not votes:
            return -1, 0.0
        best = max(votes, key=votes.__getitem__)
        return best, votes[best]
