"""Reads how far the contexts carry each sentence of an answer."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragtide.evaluators.spec import Sentence, Shared
from ragtide.evaluators.support.contexts import NOT_KNOWN
from ragtide.evaluators.support.hours import contradicted_hours
from ragtide.evaluators.support.names import names_of
from ragtide.evaluators.support.quantities import Quantity, quantities_of, spelled_quantities_of
from ragtide.evaluators.support.records import contradictions, facts_named
from ragtide.evaluators.support.source_index import SourceIndex
from ragtide.evaluators.support.words import (
    CLAUSE,
    NEGATION,
    STOP,
    UNKNOWN,
    WORD,
    language_of_words,
    languages,
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
    r"(?:passages?|sources?|documents?|docs?|contexts?|chunks?|sections?|steps?|figures?|tables?|items?|options?|point|"
    r"part|chapter|page|quellen?|dokumente?|schritt|fuentes?|pasos?|étapes?|sources?|fonti|fonte|passo|источник|шаг)"
    r"(?:\s?#?\d{1,3}(?:,|,?\s(?:and|or|to|und|y|et|e|и))?)*\s?#?$",
    re.IGNORECASE,
)
_BEHIND_LIST = 40  # characters before a number that are looked at for such a word
_MOST_NUMBERED = 12  # the largest number of a source or a step
_OF_SCALE = re.compile(r"\d\s?(?:out of|von|sur|de|su) $", re.IGNORECASE)  # 4 out of 5 stars
_OWN_LENGTH = re.compile(r"[-\s]words?\b", re.IGNORECASE)  # "a summary in 90 words" counts itself
_IDIOMS = frozenset({("seconds", 7 * 86_400.0), ("seconds", 24 * 3_600.0)})  # seven days a week, 24 hours a day
# Not only cats but also dogs: nothing is negated.
_NOT_ONLY = re.compile(
    r"\b(?:not (?:only|just)|nicht nur|no s[oó]lo|(?:non|pas) seulement|n[aã]o s[oó]|niet alleen|non solo|не только)\b",
    re.IGNORECASE,
)
_SMALL = 3  # numbers up to here in words count things of the answer: "two types"
_CARRIED = 0.8  # share of a clause's weight that its nearest segment must have for their polarity to be compared
_SAME = 0.9  # share from which a sentence is the same as its nearest segment: its clauses need no comparison
_LONGER = 2  # times as many words as the clause has: a longer segment says more than the clause
_BESIDE = 1  # other words of a segment that negates: with more, it may negate those
_CLAUSE_WORDS = 2  # with content, at least, for that
_FEWEST = 15  # words of a text whose language can be told
_FEWEST_KNOWN = 6  # if they are function words of a known language
_FEWEST_OF_SCRIPT = 3  # of a text whose script can be told
_NATIVE = 0.2  # share of function words of a language that only texts in it have
_FOREIGN_OF_OWN = 0.25  # the same for each function word of its own language: some are words of both
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
    denied: tuple[Span, ...]  # things, days and hours that a record denies
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
    if len(answer) < (_FEWEST if code == UNKNOWN else _FEWEST_KNOWN) or len(words) < _FEWEST:
        return False
    other = language_of_words(words, " ".join(answer))
    if other in (code, UNKNOWN):
        return False
    own, function = (languages()[one].function for one in (code, other))
    lower = [word.lower() for word in answer]
    foreign = sum(word in function for word in lower)
    return foreign <= max(_FOREIGN * len(answer), _FOREIGN_OF_OWN * sum(word in own for word in lower))


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
    sources = SourceIndex(words, texts, chunks, code, wanted, shared)
    sentences = (_sentence(sentence, found, sources, weight) for sentence, found in read)
    return Support(code, tuple(one for one in sentences if one is not None), sources.only_records)


def _sentence(sentence: Sentence, found: Sequence[str], sources: SourceIndex, weight: Weight) -> SentenceSupport | None:
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
    same = (
        nearest >= 0 and places.negations[nearest] in (0, 1) and bool(places.negations[nearest]) == (NEGATION in found)
    )
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
        not same and _reverses(text, found, weights, sources),
    )


def _clauses(found: Sequence[str]) -> Iterator[list[str]]:
    """Split at commas and colons. A clause of one word stays with the next; one that negates nothing else goes."""
    clause: list[str] = []
    for one in found:
        if one != CLAUSE:
            clause.append(one)
        elif sum(word > STOP for word in clause) > 1:
            yield clause
            clause = []
        elif NEGATION in clause:  # "No, it is not": an answer, not a negation
            clause = []
    yield clause


def _reverses(text: str, found: Sequence[str], weights: Mapping[str, float], sources: SourceIndex) -> bool:
    """Whether a clause of the sentence has another polarity than its nearest sentence."""
    if sources.only_records or not (sources.places.negates or NEGATION in found) or _NOT_ONLY.search(text):
        return False
    clauses = list(_clauses(found))
    negated = any(NEGATION in clause for clause in clauses)
    return any(_is_reversed(clause, negated, weights, sources) for clause in clauses)


def _is_reversed(clause: Sequence[str], negated: bool, weights: Mapping[str, float], sources: SourceIndex) -> bool:
    """Whether the nearest sentence of a context has most words of the clause, and only one of the two negates.

    So has the whole sentence, which is `negated` or not: that sentence may negate what stands in another clause here.
    Records are left out: their values negate keys, not clauses.
    """
    places = sources.places
    words = {one: weights[one] for one in clause if one > STOP}
    nearest, carried = places.nearest(words)
    if nearest < 0 or carried < _CARRIED * sum(words.values()) or places.sizes[nearest] > _LONGER * len(words):
        return False
    if len(words) < _CLAUSE_WORDS and (places.sizes[nearest] > len(words) or carried < sum(words.values())):
        return False
    text = places.text_of[nearest]
    if text >= max(1, sources.chunks) or text in sources.records or places.negations[nearest] == NOT_KNOWN:
        return False
    other = places.negations[nearest] > 0
    if other and places.sizes[nearest] - places.count_in(nearest, words) > _BESIDE:
        return False
    return (NEGATION in clause) != other and negated != other


def _numbers(sentence: Sentence, sources: SourceIndex, chunk: int) -> tuple[list[Span], list[Span]]:
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
        is_small = one.spelled and not one.kind and 1 <= one.values[0] <= _SMALL
        if is_small and not sources.counts_otherwise(one, text):
            continue
        if not is_small and (sources.has_quantity(one, text[one.start : one.end]) or _is_no_claim(one, text)):
            continue
        lacking.append((one.start, one.end))
        if sources.other_number(one, text, chunk):
            others.append((one.start, one.end))
    return lacking, others


def _is_no_claim(one: Quantity, text: str) -> bool:
    """Whether a number counts sources or steps, gives a scale, or belongs to an idiom."""
    if (one.kind, one.bases[0]) in _IDIOMS or _OWN_LENGTH.match(text, one.end):
        return True
    before = text[max(0, one.start - _BEHIND_LIST) : one.start]
    numbered = one.values[0] <= _MOST_NUMBERED and _NUMBERED.search(before)
    return not one.kind and bool(numbered or _OF_SCALE.search(before))


def _names(text: str, sources: SourceIndex) -> list[Span]:
    empty = languages()[sources.code].empty
    found = []
    for start, name in names_of(text, sources.code):
        if name.lower() in empty:
            continue
        for part in name.split("-"):
            if part[:1].islower():
                continue
            words = [one for one in tokens(part, sources.code) if one > STOP]
            if words and not sources.has_name(part, words):
                found.append((start, start + len(name)))
                break
    return found


def _denied(text: str, sources: SourceIndex) -> list[Span]:
    spans = contradicted_hours(sources.schedule, text)
    facts = facts_named(sources.facts, text) if sources.facts else []
    if facts:
        places = contradictions(facts, raw_words(text), languages()[sources.code])
        if places:
            matches = list(WORD.finditer(text))
            spans += [matches[place].span() for place in places]
    return spans
