"""Tells whether a clause is negated, by the words before and behind a place in it."""

from collections.abc import Sequence

from ragtide.evaluators.support.words import Language

BEHIND = 8  # words: "street and valet parking are not available"


def is_negation(word: str, language: Language) -> bool:
    """Whether the lower-case word negates."""
    return word in language.negation or word.endswith(("n't", "n\u2019t"))


def is_negated(words: Sequence[str], place: int, language: Language) -> bool:
    """Whether the word at `place` is negated: the nearest word that steers its clause negates.

    A clause ends at a word of contrast. "It does not offer parking or Wi-Fi" negates both, "it has no parking but
    offers Wi-Fi" one of them, "Wi-Fi is not offered" it from behind.
    """
    for at in range(place - 1, -1, -1):
        word = words[at]
        if is_negation(word, language):
            return True
        if word in language.contrast:
            break
        if word in language.affirm:
            if at + 1 < len(words) and is_negation(words[at + 1], language):
                return True
            break
    for at in range(place + 1, min(place + BEHIND, len(words))):
        word = words[at]
        if is_negation(word, language):
            return True
        if word in language.contrast:
            return False
        if word in language.affirm and not (at + 1 < len(words) and is_negation(words[at + 1], language)):
            return False
    return False
