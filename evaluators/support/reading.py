"""Reads how far the contexts carry each sentence of an answer."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil

from ragtide.evaluators.spec import Sentence, Shared
from ragtide.evaluators.support.contexts import NOT_KNOWN, Places, Segments, months_of, segments_by
from ragtide.evaluators.support.hours import contradicted_hours, schedule_of
from ragtide.evaluators.support.names import initials_of, names_of
from ragtide.evaluators.support.numbers import KnownQuantities
from ragtide.evaluators.support.quantities import Quantity, quantities_of, spelled_quantities_of
from ragtide.evaluators.support.records import Fact, contradictions, facts_named, facts_of
from ragtide.evaluators.support.words import (
    CLAUSE,
    NEGATION,
    STOP,
    UNKNOWN,
    WORD,
    language_of_words,
    languages,
    number_words,
    raw_words,
    script_of_words,
    tokens,
)

Span = tuple[int, int]
Weight = Callable[[str], float]

MOST_SENTENCES = 1_000
_LIST_HEAD = re.compile(r"[\s|>*#(\[-]*\d{1,3}[.)\]]+\s")
# Numbers of sources and list items are no claims: [1], [2, 3], (Passage 2), Step 4.
_CITATION = re.compile(r"\[\s?\d{1,3}(?:\s?[,;\u2013-]\s?\d{1,3})*\s?\]")
_NUMBERED = re.compile(
    r"(?:passages?|sources?|documents?|docs?|contexts?|chunks?|sections?|steps?|figures?|tables?|items?|options?|points?|"
    r"part|chapter|page|quellen?|dokumente?|schritt|fuentes?|pasos?|étapes?|sources?|fonti|fonte|passo|источник|шаг)"
    r"(?:\s?#?\d{1,3}(?:,|,?\s(?:and|or|to|und|y|et|e|и))?)*\s?#?$",
    re.IGNORECASE,
)
_BEHIND_LIST = 40  # characters before a number that are looked at for such a word
_INSIDE_NUMBER = (".", ",", ":", "'", "\u2019", "/")  # "5" does not stand in 1.5
_MOST_SEARCHED = 20_000  # characters: in longer texts all numbers are read at once
_MOST_TRIES = 20  # places of its digits at which a number is looked for
# A name is found by its beginning: Russian where the contexts have Russia.
_SHORTEST_NAME, _KEPT_NAME = 4, 0.65
_OF_SCALE = re.compile(r"\b(?:out of|von|sur|de|su) $", re.IGNORECASE)  # 4 out of 5 stars
_OWN_LENGTH = re.compile(r"[-\s]words?\b", re.IGNORECASE)  # "a summary in 90 words" counts itself
_IDIOMS = frozenset({("seconds", 7 * 86_400.0), ("seconds", 24 * 3_600.0)})  # seven days a week, 24 hours a day
_SMALL = 3  # numbers up to here in words count things of the answer: "two types"
_CARRIED = 0.65  # share of a clause's weight that its nearest segment must have for their polarity to be compared
_SAME = 0.9  # share from which a sentence is the same as its nearest segment: its clauses need no comparison
_LONGER = 2  # times as many words as the clause has: a longer segment says more than the clause
_CLAUSE_WORDS = 2  # with content, at least, for that
_FEWEST = 15  # words of a text whose language can be told
_FEWEST_OF_SCRIPT = 3  # of a text whose script can be told
_NATIVE = 0.2  # share of function words of a language that only texts in it have
_FOREIGN = 0.08  # share of the contexts' function words in an answer, up to which it is in another language


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """What the contexts lack of a sentence. Spans are character offsets in the answer."""

    start: int
    end: int
    weight: float  # of its words with content
    lacking: float  # weight of those that the contexts lack
    pairs: int  # neighbouring words that differ
    apart: int  # of these, pairs that no sentence of the contexts has together
    words: tuple[str, ...]
    nearest: int  # chunk that has most of its words, -1 if none has any
    numbers: tuple[Span, ...]  # that the contexts lack
    other_numbers: tuple[Span, ...]  # of these, where its nearest sentence has another number of the same kind
    names: tuple[Span, ...]
    denied: tuple[Span, ...]  # things, days and hours that a record says are not so
    reversed: bool  # its nearest sentence says the same with another polarity

    @property
    def share(self) -> float:
        """Share of the weight of its words that the contexts lack."""
        return self.lacking / self.weight if self.weight else 0.0


@dataclass(frozen=True, slots=True)
class Support:
    """The sentences of an answer that have words with content, and the language that they were read in."""

    language: str
    sentences: tuple[SentenceSupport, ...]
    from_records: bool  # every context is a record


def in_another_language(answer: Sequence[str], contexts: str, code: str) -> bool:
    """Whether answer and contexts are in different languages or scripts, so that their words cannot be compared.

    Takes the words of the answer as they stand, and the head of the contexts. False where either is too short to tell.
    """
    words = raw_words(contexts)
    function = languages()[code].function
    if sum(map(function.__contains__, words)) >= _NATIVE * len(words) > 0:
        return False
    if script_of_words(answer) != script_of_words(words):
        return min(len(answer), len(words)) >= _FEWEST_OF_SCRIPT
    if len(answer) < _FEWEST or len(words) < _FEWEST:
        return False
    other = language_of_words(words, " ".join(answer))
    if other in (code, UNKNOWN):
        return False
    function = languages()[other].function
    return sum(word.lower() in function for word in answer) <= _FOREIGN * len(answer)


class _Sources:
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
        self.facts: list[Fact] = facts_named([fact for found in facts for fact in found], answer)
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
            read = _all_quantities_by(self.code) if spelled else quantities_of
            self._known[spelled] = KnownQuantities([self._shared.once(read, text) for text in self._texts])
        return self._known[spelled]

    def has_quantity(self, one: Quantity, written: str) -> bool:
        """Whether the texts have this quantity: as it is written, which is looked for first, or in another notation, or
        computed from theirs.
        """
        key = (written, one.values, one.kind)
        if key not in self._has:
            self._has[key] = self._has_written(written) or (
                self.known(spelled=False).have(one)
                or self.known(spelled=True).have(one)
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
            before, behind = self.joined[at - 1 : at], self.joined[at + len(written) : at + len(written) + 1]
            if not (before.isalnum() or before in _INSIDE_NUMBER or behind.isalnum() or behind in _INSIDE_NUMBER):
                return True
            at = self.joined.find(written, at + 1)
        return False

    def has_name(self, name: str, words: Sequence[str]) -> bool:
        """Whether the texts have the word of a name, or the words that its letters begin."""
        if all(word in self.places.words for word in words):
            return True
        if self._lower is None:
            self._lower = self.joined.lower()
        if name.lower()[: max(_SHORTEST_NAME, ceil(_KEPT_NAME * len(name)))] in self._lower:
            return True
        if not (name.isupper() and 2 <= len(name) <= 6):
            return False
        if self._initials is None:
            self._initials = "\n".join(map(initials_of, self._texts))
        return name in self._initials

    def other_number(self, one: Quantity, text: int) -> bool:
        """Whether this text has another number of the same kind."""
        return 0 <= text < len(self._texts) and any(
            other.kind == one.kind and other.spelled == one.spelled for other in self.known(spelled=True).chunks[text]
        )


@lru_cache(maxsize=32)
def _all_quantities_by(code: str) -> Callable[[str], list[Quantity]]:
    """Return the function that reads the quantities in digits and in words: `Shared.once` keeps its results."""
    return lambda text: sorted([*quantities_of(text), *spelled_quantities_of(text, code)])


def support_of(
    answer: Sequence[Sentence],
    words: Sequence[str],
    texts: Sequence[str],
    chunks: int,
    code: str,
    weight: Weight,
    shared: Shared,
) -> Support:
    """Compare each sentence with the texts: the first `chunks` of them are contexts, the others, such as the question,
    carry words too. `words` are those of the answer, as they stand.
    """
    read = [(sentence, tokens(sentence.text, code)) for sentence in answer[:MOST_SENTENCES]]
    wanted = {one for _, found in read for one in found if one > STOP}
    sources = _Sources(words, texts, chunks, code, wanted, shared)
    sentences = (_sentence(sentence, found, sources, weight) for sentence, found in read)
    return Support(code, tuple(one for one in sentences if one is not None), sources.only_records)


def _sentence(sentence: Sentence, found: Sequence[str], sources: _Sources, weight: Weight) -> SentenceSupport | None:
    words = [one for one in found if one > STOP]
    places, text = sources.places, sentence.text
    known, weights = places.words, dict[str, float]()
    total = lacking = 0.0
    for word in words:
        own = weights.get(word)
        if own is None:
            own = weights[word] = weight(word)
        total += own
        if word not in known:
            lacking += own
    pairs = [(one, other) for one, other in pairwise(words) if one != other]
    apart = places.apart(pairs)
    nearest, carried = places.nearest(weights)
    same = nearest >= 0 and places.negations[nearest] == found.count(NEGATION)
    same = same and carried >= _SAME * sum(weights.values())
    chunk = places.text_of[nearest] if nearest >= 0 else -1
    numbers, others = _numbers(sentence, sources, chunk)
    names = _names(text, sources)
    denied = _denied(text, sources)
    if not words and not numbers:
        return None
    start = sentence.start
    return SentenceSupport(
        start,
        sentence.end,
        total,
        lacking,
        len(pairs),
        apart,
        tuple(words),
        chunk if chunk < sources.chunks else -1,
        tuple((start + a, start + b) for a, b in numbers),
        tuple((start + a, start + b) for a, b in others),
        tuple((start + a, start + b) for a, b in names),
        tuple((start + a, start + b) for a, b in denied),
        not same and _reverses(found, weights, sources),
    )


def _clauses(found: Sequence[str]) -> Iterator[list[str]]:
    """Split at commas and colons. A clause of one word stays with the next."""
    clause: list[str] = []
    for one in found:
        if one != CLAUSE:
            clause.append(one)
        elif sum(word > STOP for word in clause) > 1:
            yield clause
            clause = []
    yield clause


def _reverses(found: Sequence[str], weights: Mapping[str, float], sources: _Sources) -> bool:
    """Whether a clause of the sentence has another polarity than its nearest sentence."""
    if sources.only_records or not (sources.places.negates or NEGATION in found):
        return False
    negations = found.count(NEGATION)
    return any(_is_reversed(clause, negations, weights, sources) for clause in _clauses(found))


def _is_reversed(clause: Sequence[str], negations: int, weights: Mapping[str, float], sources: _Sources) -> bool:
    """Whether the nearest sentence of a context has most words of the clause, and a negation more or less.

    So has the whole sentence, with its `negations`: that sentence may negate what stands in another clause here.
    Records are left out: their values negate keys, not clauses.
    """
    places = sources.places
    words = {one: weights[one] for one in clause if one > STOP}
    if len(words) < _CLAUSE_WORDS:
        return False
    nearest, carried = places.nearest(words)
    if nearest < 0 or carried < _CARRIED * sum(words.values()) or places.sizes[nearest] > _LONGER * len(words):
        return False
    text = places.text_of[nearest]
    if text >= max(1, sources.chunks) or text in sources.records or places.negations[nearest] == NOT_KNOWN:
        return False
    return all((one + places.negations[nearest]) % 2 == 1 for one in (clause.count(NEGATION), negations))


def _numbers(sentence: Sentence, sources: _Sources, chunk: int) -> tuple[list[Span], list[Span]]:
    """Return the numbers that the sources lack, and those of them for which the nearest chunk has another one."""
    text = sentence.text
    lacking: list[Span] = []
    others: list[Span] = []
    found = quantities_of(text)
    lower = text.lower()
    if any(word in lower for word in sources.number_words):
        found += spelled_quantities_of(text, sources.code)
    if not found:
        return lacking, others
    head = _LIST_HEAD.match(text)
    begin = head.end() if head else 0
    cited = [match.span() for match in _CITATION.finditer(text)]
    for one in found:
        if one.start < begin or any(start <= one.start < end for start, end in cited):
            continue
        if one.spelled and not one.kind and one.values[0] <= _SMALL:
            continue
        if sources.has_quantity(one, text[one.start : one.end]) or _is_no_claim(one, text):
            continue
        lacking.append((one.start, one.end))
        if sources.other_number(one, chunk):
            others.append((one.start, one.end))
    return lacking, others


def _is_no_claim(one: Quantity, text: str) -> bool:
    """Whether a number counts sources or steps, gives a scale, or belongs to an idiom."""
    if (one.kind, one.bases[0]) in _IDIOMS or _OWN_LENGTH.match(text, one.end):
        return True
    before = text[max(0, one.start - _BEHIND_LIST) : one.start]
    return not one.kind and bool(_OF_SCALE.search(before) or _NUMBERED.search(before))


def _names(text: str, sources: _Sources) -> list[Span]:
    empty = languages()[sources.code].empty
    found = []
    for start, name in names_of(text, sources.code):
        if name.lower() in empty:
            continue
        for part in name.split("-"):
            if not part[:1].isupper():
                continue
            words = [one for one in tokens(part, sources.code) if one > STOP]
            if words and not sources.has_name(part, words):
                found.append((start, start + len(name)))
                break
    return found


def _denied(text: str, sources: _Sources) -> list[Span]:
    spans = contradicted_hours(sources.schedule, text)
    if sources.facts:
        places = contradictions(sources.facts, raw_words(text), languages()[sources.code])
        if places:
            matches = list(WORD.finditer(text))
            spans += [matches[place].span() for place in places]
    return spans
