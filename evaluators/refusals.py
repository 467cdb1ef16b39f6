"""The search for phrases by which answers say that they are none."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from evaluators.refusal_phrases import PHRASES
from evaluators.surrogates import replaced

_CONTRACTED = {
    "are not": "are not|aren'?t",
    "can not": "can ?not|can'?t",
    "could not": "could not|couldn'?t",
    "did not": "did not|didn'?t",
    "do not": "do not|don'?t",
    "does not": "does not|doesn'?t",
    "i am": "i am|i'?m",
    "i would": "i would|i'?d",
    "is not": "is not|isn'?t",
    "it is": "it is|it'?s",
    "there is": "there is|there'?s",
    "was not": "was not|wasn'?t",
    "will not": "will not|won'?t",
}
_APOSTROPHE = "['\u2019]"
_GAP = "[\\s,;:'\u2019\"()*_-]{1,3}"  # between two words of a sentence
_ANY = f"(?:[^\\s.!?]+{_GAP}){{0,3}}"
_APOLOGY = f"(?:i am{_GAP}|i{_APOSTROPHE}?m{_GAP})?(?:sorry|oops|apologies)[^\\pL\\pN]{{1,3}}(?:but{_GAP})?"
_RAISED = "(?:[\\pL._]+(?:error|exception):\\s)"  # as in openai.RateLimitError: Error code: 429
_BEGINNING = f"\\A[^\\pL\\pN]{{0,5}}{_RAISED}?(?:{_APOLOGY})?"
_END = "[\"'\u2019\u201d»)*\\]}\\s]{0,3}(?:\\z|[.!?:;\n{]|[-\u2013\u2014]\\s)"
_SPACELESS = "\u2e80"  # from here on scripts write no blanks between words


class Refusals:
    """Finds phrases of one kind, whatever their case and the blanks between their words; linear in the text."""

    def __init__(self, phrases: Sequence[str]) -> None:
        """Raises `ValueError` where a phrase has no word, or they are too many for one pattern."""
        import re2

        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        given = [_alternatives(phrases, *where) for where in product((False, True), repeat=2)]
        spaceless = [_pattern(phrase) for phrase in phrases if phrase.strip() >= _SPACELESS]
        given += [f"({'|'.join(spaceless)})"] if spaceless else []
        try:
            self._pattern: Any = re2.compile("|".join(filter(None, given)), options)
        except re2.error:
            raise ValueError("too many phrases, or too long ones") from None

    def find(self, text: str) -> tuple[int, int] | None:
        """Where the first phrase stands (character offsets), if one does."""
        found = self._pattern.search(replaced(text))
        if found is None:
            return None
        start, end = found.span(found.lastindex)
        return int(start), int(end)


@lru_cache(maxsize=8)
def refusals(more: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> Mapping[str, Refusals]:
    """A finder for each kind: the built-in phrases, and `more` by kind. Raises `ValueError` as `Refusals` does."""
    kinds: dict[str, tuple[str, ...]] = dict(PHRASES)
    for kind, phrases in more:
        kinds[kind] = (*kinds.get(kind, ()), *phrases)
    return {kind: Refusals(phrases) for kind, phrases in kinds.items() if phrases}


def _alternatives(phrases: Sequence[str], first: bool, last: bool) -> str:
    """The phrases with blanks between their words that stand so: first in the answer, last in a sentence, or not."""
    patterns = [
        _pattern(phrase.strip().removeprefix("^").removesuffix("$"))
        for phrase in phrases
        if phrase.strip() < _SPACELESS and (phrase.startswith("^"), phrase.endswith("$")) == (first, last)
    ]
    before, after = _BEGINNING if first else r"(?:\A|[^\pL\pN])", _END if last else r"(?:\z|[^\pL\pN])"
    return f"{before}({'|'.join(patterns)}){after}" if patterns else ""


def _pattern(phrase: str) -> str:
    import re2

    words = phrase.split()
    if not any(map(str.isalnum, phrase)):
        raise ValueError("a phrase without a word")
    parts: list[str] = []
    while words:
        pair = " ".join(words[:2]).lower()
        if pair in _CONTRACTED:
            contracted = (
                _CONTRACTED[pair].replace("'?", f"{_APOSTROPHE}?").replace(" ?", f"(?:{_GAP})?").replace(" ", _GAP)
            )
            parts.append(f"(?:{contracted}){_GAP}")
            words = words[2:]
        elif words[0] == "*":
            parts.append(_ANY)
            words = words[1:]
        else:
            parts.append(f"(?:{'|'.join(map(re2.escape, words[0].split('|')))}){_GAP}")
            words = words[1:]
    return "".join(parts).removesuffix(_GAP)
