"""Indexes the sources of an answer by its words, and finds its numbers and names in them."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil

from ragtide.evaluators.spec import Shared
from ragtide.evaluators.support.contexts import Places, Segments, months_of, segments_by
from ragtide.evaluators.support.hours import schedule_of
from ragtide.evaluators.support.names import initials_of
from ragtide.evaluators.support.numbers import KnownQuantities, is_year
from ragtide.evaluators.support.quantities import Quantity, quantities_of, spelled_quantities_of
from ragtide.evaluators.support.records import Fact, facts_named, facts_of
from ragtide.evaluators.support.words import ENDING, STOP, is_letter, number_words, tokens

_INSIDE_NUMBER = (".", ",", ":", "'", "\u2019", "/")  # "5" does not stand in 1.5
_MOST_SEARCHED = 20_000  # characters: in longer texts all numbers are read at once
_MOST_TRIES = 20  # places of its digits at which a number is looked for
# A name is found by its beginning: Russian where the contexts have Russia.
_SHORTEST_NAME, _KEPT_NAME = 4, 0.6
_LONGEST_ENDING = 2  # of a short name: Rome and Romes, not Ann and annual
_NOUN = re.compile(r"\s?([^\W\d_]+)")


class SourceIndex:
    """The contexts and the question of a trace, read as far as the answer needs it."""

    def __init__(
        self, answer: Sequence[str], texts: Sequence[str], chunks: int, code: str, wanted: set[str], shared: Shared
    ) -> None:
        segments: list[Segments] = [shared.once(segments_by(code), text) for text in texts]
        self.code = code
        self.places = Places(wanted, segments)
        if any(word[0] == "#" for word in wanted):
            self.places.add(month for text in texts for month in months_of(text))
        self.chunks = chunks  # the texts behind are not contexts
        facts = [shared.once(facts_of, text) for text in texts]
        self.facts: list[Fact] = facts_named([fact for found in facts for fact in found], "".join(answer))
        self.number_words = number_words(code).intersection(map(str.lower, answer))  # of the answer
        self.records = frozenset(i for i, found in enumerate(facts) if found)
        schedules = [shared.once(schedule_of, text) for text in texts]
        self.schedule = next((schedule for schedule in schedules if schedule), {})
        self._texts, self._shared = texts, shared
        self._known: dict[bool, KnownQuantities] = {}
        self._has: dict[tuple[str, tuple[float, ...], str], bool] = {}
        self._joined: str | None = None
        self._lower: str | None = None
        self._initials: str | None = None
        self._counted: dict[str, set[float]] | None = None

    @property
    def joined(self) -> str:
        """All texts, one behind the other."""
        if self._joined is None:
            self._joined = "\n".join(self._texts)
        return self._joined

    @property
    def only_records(self) -> bool:
        """Whether every context is a record."""
        return len(self.records) >= max(1, self.chunks)

    def known(self, *, spelled: bool) -> KnownQuantities:
        """The quantities of the texts: those in digits, or those in words too."""
        if spelled not in self._known:
            once = self._shared.once
            words = [once(_spelled_by(self.code), text) for text in self._texts] if spelled else []
            if spelled and not any(words):
                self._known[spelled] = self.known(spelled=False)
            else:
                digits = [once(quantities_of, text) for text in self._texts]
                both = [sorted([*one, *other]) for one, other in zip(digits, words, strict=True)] if spelled else digits
                self._known[spelled] = KnownQuantities(both)
        return self._known[spelled]

    def has_quantity(self, one: Quantity, written: str) -> bool:
        """Whether the texts have this quantity: as it is written, which is looked for first, or in another notation, or
        computed from theirs.
        """
        key = (written, one.values, one.kind)
        if key not in self._has:
            self._has[key] = self._has_written(written) or (
                self.known(spelled=False).have(one)
                or (self.known(spelled=True) is not self.known(spelled=False) and self.known(spelled=True).have(one))
                or self.known(spelled=True).compute(one)
            )
        return self._has[key]

    def _has_written(self, written: str) -> bool:
        if len(self.joined) > _MOST_SEARCHED:
            return False
        at = self.joined.find(written)
        for _ in range(_MOST_TRIES):
            if at < 0:
                break
            before, behind = self.joined[at - 1 : at], self.joined[at + len(written) : at + len(written) + 2]
            is_percent, behind = behind.lstrip()[:1] in ("%", "\uff05"), behind[:1]
            if not is_percent and not any(sign.isalnum() or sign in _INSIDE_NUMBER for sign in before + behind):
                return True
            at = self.joined.find(written, at + 1)
        return False

    def has_name(self, name: str, words: Sequence[str]) -> bool:
        """Whether the texts have the word of a name, or the words that its letters begin."""
        if all(word in self.places.words for word in words):
            return True
        if self._lower is None:
            self._lower = self.joined.lower()
        kept = len(name) if len(name) <= _SHORTEST_NAME else max(_SHORTEST_NAME, ceil(_KEPT_NAME * len(name)))
        if self._begins_word(name.lower()[:kept], whole=kept == len(name)):
            return True
        if not (name.isupper() and 2 <= len(name) <= 6):
            return False
        if self._initials is None:
            self._initials = "\n".join(map(initials_of, self._texts))
        return name in self._initials

    def _begins_word(self, beginning: str, *, whole: bool) -> bool:
        """Whether a word of the texts begins so; `whole`: with an ending of at most two letters."""
        text = self._lower or ""
        at = text.find(beginning)
        for _ in range(_MOST_TRIES):
            if at < 0:
                break
            end = at + len(beginning)
            tail = ENDING.match(text, end) if whole else None
            if not (at and is_letter(text[at - 1])) and (not whole or (tail and tail.end() - end <= _LONGEST_ENDING)):
                return True
            at = text.find(beginning, at + 1)
        return False

    def counts_otherwise(self, one: Quantity, text: str) -> bool:
        """Whether the texts count the same things as this number of the text, and have another number of them."""
        noun = _noun_behind(text, one.end, self.code)
        if noun not in self.places.words:
            return False
        if self._counted is None:
            self._counted = {}
            for known, source in zip(self.known(spelled=True).chunks, self._texts, strict=True):
                for other in known:
                    self._counted.setdefault(_noun_behind(source, other.end, self.code), set()).update(other.values)
        counted = self._counted.get(noun)
        return counted is not None and counted.isdisjoint(one.values)

    def other_number(self, one: Quantity, text: str, source: int) -> bool:
        """Whether a text has another number of the same kind, of the same things, or another year."""
        if not 0 <= source < len(self._texts):
            return False
        others = [other for other in self.known(spelled=True).chunks[source] if other.kind == one.kind]
        if one.kind:
            return bool(others)
        noun = _noun_behind(text, one.end, self.code)
        nouns = (_noun_behind(self._texts[source], other.end, self.code) for other in others)
        return (is_year(one) and any(map(is_year, others))) or (noun != "" and noun in nouns)


def _noun_behind(text: str, end: int, code: str) -> str:
    """Return the folded word behind a number, "" if there is none with content."""
    match = _NOUN.match(text, end)
    words = tokens(match[1], code) if match else []
    return words[0] if words and words[0] > STOP else ""


@lru_cache(maxsize=32)
def _spelled_by(code: str) -> Callable[[str], list[Quantity]]:
    """Return the function that reads the quantities in words of this language: `Shared.once` keeps its results."""
    return lambda text: spelled_quantities_of(text, code)
