"""Finds phrases that mean that an answer is no answer."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from itertools import product
from typing import Any

from ragtide.evaluators.text.surrogates import replace_surrogates

KINDS = ("error_text", "refused", "no_knowledge", "asked_back")  # of refusal_phrases.toml
Words = Mapping[str, Sequence[str]]

_PRONOUNS = frozenset({"i", "it", "that", "there", "we", "you"})
_SHORT = {"am": "m", "are": "re", "have": "ve", "is": "s", "will": "ll", "would": "d"}  # after a pronoun
_NEGATED = frozenset(
    ["are", "can", "could", "did", "do", "does", "had", "has", "have", "is", "should", "was", "were", "will", "would"]
)
_IRREGULAR = {"can": "ca", "will": "wo"}  # before "n't"
_APOSTROPHE = "['\u2019]"
_GAP = "[\\s,;:'\u2019\"()*_-]{1,3}"  # between two words of a sentence
_ANY = f"(?:[^\\s.!?]+{_GAP}){{0,3}}"
_APOLOGY = f"(?:(?:i am{_GAP}|i{_APOSTROPHE}?m{_GAP})?(?:sorry|oops|apologies)[^\\pL\\pN]{{1,3}}(?:but{_GAP})?)"
_RAISED = "(?:[\\pL._]+(?:error|exception):\\s)"  # as in openai.RateLimitError: Error code: 429
_BEGINNING = f"\\A[^\\pL\\pN]{{0,5}}{_RAISED}?{_APOLOGY}?"
_END = "[\"'\u2019\u201d»)*\\]}\\s]{0,3}(?:\\z|[.!?:;\n{]|[-\u2013\u2014]\\s)"
_SPACELESS = "\u2e80"  # from here on scripts write no blanks between words
_MEMORY = 32 << 20  # bytes at most for the states of a search; RE2 searches 25 times slower where its default is short


class Refusals:
    """Finds phrases of one kind, ignoring case and white space. Linear in the text.

    `words` are the phrases for a `{name}`.
    """

    def __init__(self, phrases: Sequence[str], words: Words | None = None) -> None:
        """Raises `ValueError` if a phrase has no word, or they are too many for one pattern."""
        import re2

        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = _MEMORY
        each = [phrase for given in phrases for phrase in _with_sentence_end(given.strip())]
        spaced = [phrase for phrase in each if phrase < _SPACELESS]
        given = [_anchored_pattern(spaced, words or {}, *where) for where in product((False, True), repeat=2)]
        spaceless = [_pattern(phrase, {}) for phrase in each if phrase >= _SPACELESS]
        given += [f"({'|'.join(spaceless)})"] if spaceless else []
        try:
            self._pattern: Any = re2.compile("|".join(filter(None, given)), options)
        except re2.error:
            raise ValueError("too many phrases, or too long ones") from None

    def find(self, text: str) -> tuple[int, int] | None:
        """Return the character offsets of the first phrase, if any."""
        found = self._pattern.search(replace_surrogates(text))
        if found is None:
            return None
        start, end = found.span(found.lastindex)
        return int(start), int(end)


@lru_cache(maxsize=8)
def refusals(more: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> Mapping[str, Refusals]:
    """Return a finder for each kind: the built-in phrases and `more`. Raises `ValueError` like `Refusals`."""
    words, kinds = built_in()
    for kind, phrases in more:
        kinds[kind] = (*kinds.get(kind, ()), *phrases)
    return {kind: Refusals(phrases, words) for kind, phrases in kinds.items() if phrases}


def built_in() -> tuple[Words, dict[str, tuple[str, ...]]]:
    """Load the words of refusal_phrases.toml by name, and its phrases by kind."""
    read = tomllib.loads((resources.files("ragtide.evaluators.text") / "refusal_phrases.toml").read_text("utf-8"))
    return read["words"], {kind: tuple(phrase for of in read[kind].values() for phrase in of) for kind in KINDS}


def _with_sentence_end(phrase: str) -> tuple[str, ...]:
    """Split a phrase whose last word is optional at the end of a sentence into two."""
    return (phrase.removesuffix("|$"), phrase.rpartition(" ")[0] + " $") if phrase.endswith("|$") else (phrase,)


def _anchored_pattern(phrases: Sequence[str], words: Words, first: bool, last: bool) -> str:
    """Make a pattern of the phrases with these anchors: first in the answer, last in a sentence."""
    patterns = [
        _pattern(phrase.removeprefix("^").removesuffix("$"), words)
        for phrase in phrases
        if (phrase.startswith("^"), phrase.endswith("$")) == (first, last)
    ]
    before, after = _BEGINNING if first else r"(?:\A|[^\pL\pN])", _END if last else r"(?:\z|[^\pL\pN])"
    return f"{before}({'|'.join(patterns)}){after}" if patterns else ""


def _pattern(phrase: str, words: Words) -> str:
    if not any(map(str.isalnum, phrase)):
        raise ValueError("a phrase without a word")
    pattern, gap, before = "", "", frozenset[str]()
    words_left = phrase.split()
    while words_left:
        word = words_left.pop(0)
        choices = frozenset(word.lower().split("|"))
        if word == "*":
            pattern, gap = f"{pattern}{gap}{_ANY}", ""
        elif choices <= _NEGATED and words_left[:1] == ["not"]:
            del words_left[0]
            pattern, gap = pattern + _negated(choices, gap, before), _GAP
        else:
            pattern, gap = pattern + _word(word, words, gap, before), _GAP
        before = choices
    return pattern


def _word(word: str, words: Words, gap: str, before: frozenset[str]) -> str:
    import re2

    choices = word.split("|")
    whole = "|".join(
        "|".join(_pattern(each, words) for each in words[choice[1:-1]])
        if choice[:1] + choice[-1:] == "{}" and choice[1:-1] in words
        else str(re2.escape(choice))
        for choice in choices
    )
    short = "|".join(_SHORT[choice] for choice in choices if choice in _SHORT)
    if short and gap and before <= _PRONOUNS:
        return f"(?:{gap}(?:{whole})|{_APOSTROPHE}?(?:{short}))"
    if short and not gap:  # what stands before is not known
        whole = f"{whole}|{short}"
    return f"{gap}(?:{whole})"


def _negated(verbs: frozenset[str], gap: str, before: frozenset[str]) -> str:
    """Make a pattern of the verbs with "not", in one word or two."""
    one = "|".join(f"{_IRREGULAR.get(verb, verb)}n{_APOSTROPHE}?t" for verb in sorted(verbs))
    two = _word("|".join(sorted(verbs)), {}, gap, before)
    joined = f"|{gap}cannot" if "can" in verbs else ""
    return f"(?:{two}{_GAP}not|{gap}(?:{one}){joined})"
