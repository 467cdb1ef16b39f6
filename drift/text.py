"""Phrases that sentences about problems and insights share: scope, number, share and time; lines of a length. Pure."""

import math
import unicodedata
from datetime import datetime

from ragtide.evaluators.text.surrogates import replace_surrogates

_ELLIPSIS = "…"


def scope_label(app: str, environment: str, model: str = "", segment: str = "", segment_value: str = "") -> str:
    """Name the application with, in brackets, environment, model and segment."""
    known = [environment, f"model {model}" if model else "", f"{segment} {segment_value}" if segment else ""]
    inside = ", ".join(filter(None, known))
    return f"{app} ({inside})" if inside else app


def number(value: float, unit: str = "") -> str:
    """Format to three digits, from 1,000 on to whole numbers, never with an exponent."""
    size = abs(value)
    if not math.isfinite(value) or size == 0 or 1e-4 <= size < 999.5:
        text = f"{value:.3g}"
    elif size < 1:
        text = f"{value:.{2 - math.floor(math.log10(size))}f}".rstrip("0")
    else:
        text = f"{value:,.0f}"
    return f"{text} {unit}".rstrip()


def percent(share: float) -> str:
    """Format a share to three digits."""
    return f"{share * 100:.3g} %"


def timestamp(at: datetime) -> str:
    """Format a time in UTC, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def one_line(text: str) -> str:
    """Replace line breaks and control characters by spaces, and lone surrogates."""
    if text.isascii() and text.isprintable():
        return text.strip()
    text = replace_surrogates(text)
    return " ".join("".join(" " if unicodedata.category(sign) in ("Cc", "Zl", "Zp") else sign for sign in text).split())


def cut(sentence: str, longest: int) -> str:
    """Cut a sentence to so many characters, if possible between words."""
    if len(sentence) <= longest:
        return sentence
    kept = sentence[: longest - 1]
    words, space, _ = kept.rpartition(" ")
    return f"{(words if space and len(words) > longest // 2 else kept).rstrip(' ,;:.(')}{_ELLIPSIS}"
