"""Make names and sentences fit where they go: one line, no control characters, a largest length. Pure."""

import hashlib
import unicodedata

from ragtide.evaluators.text.surrogates import replace_surrogates

_DIGEST = 12
_ELLIPSIS = "…"


def one_line(text: str) -> str:
    """Replace line breaks and control characters by spaces, and lone surrogates."""
    if text.isascii() and text.isprintable():
        return text.strip()
    text = replace_surrogates(text)
    return " ".join("".join(" " if unicodedata.category(sign) in ("Cc", "Zl", "Zp") else sign for sign in text).split())


def shorten(name: str, longest: int) -> str:
    """Shorten a name to so many characters, with a digest that keeps it unique."""
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: longest - _DIGEST - 1]}~{digest}"


def cut(sentence: str, longest: int) -> str:
    """Cut a sentence to so many characters, if possible between words."""
    if len(sentence) <= longest:
        return sentence
    kept = sentence[: longest - 1]
    words, space, _ = kept.rpartition(" ")
    return f"{(words if space and len(words) > longest // 2 else kept).rstrip(' ,;:.(')}{_ELLIPSIS}"
