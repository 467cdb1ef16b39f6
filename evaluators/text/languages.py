"""Detects the language of a text, offline. "unknown" rather than a guess."""

from functools import lru_cache
from typing import Any

UNKNOWN = "unknown"
CHARACTERS = 300  # as many tell the language as well as the whole text does
LETTER_BYTES = 20  # fewer UTF-8 bytes of letters are noise: 20 Latin letters, 7 Japanese ones
CONFIDENCE = 0.5  # code, names and lists lie below
# Languages whose sentences are often told apart wrongly, and whose speakers read each other.
_KINDRED = ({"da", "nb", "nn", "no"}, {"cs", "sk"}, {"bs", "hr", "sr"}, {"id", "ms"}, {"gl", "pt"})


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def language_of(text: str) -> str:
    """Return an ISO 639 code, or "unknown" if the text is too short, has no words, or is ambiguous."""
    return _language_of(text[:CHARACTERS])


@lru_cache(maxsize=4_096)
def _language_of(head: str) -> str:
    letters = "".join(filter(str.isalpha, head))
    if len(letters.encode("utf-8", "replace")) < LETTER_BYTES:
        return UNKNOWN
    code, confidence = _identifier().classify(head)
    return UNKNOWN if confidence < CONFIDENCE or code in ("und", "zxx") else str(code)


def same_language(one: str, other: str) -> bool:
    """Whether two codes name one language, or languages that short texts do not distinguish."""
    return one == other or any({one, other} <= kindred for kindred in _KINDRED)
