"""Phrases of words that open something: what restores a wallet; a passphrase in quotes, or to the end of its line."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern

_OPENING = r"[\"'`*]{0,3}(?: (?:is|are|was|ist|est|es))?\s{0,2}[:=]?[\"'`*]{0,3}\s{1,4}[\"'`]?"
_SEED = (  # of twelve words or more (BIP 39)
    r"(?i)(?:(?:seed|recovery|mnemonic|backup|wallet|secret)[ _-]?(?:phrase|words)|mnemonic(?: code)?|\bseed\b)"
    rf"{_OPENING}((?:[a-z]{{3,8}},? ){{11,23}}[a-z]{{3,8}})\b"
)
_PASSPHRASE = (
    r"(?i:pass ?phrase|password)[\"'`*]{0,3}(?: is| was|:| =|=|: is) {0,2}"
    r"(?:[\"'`]([A-Za-z]{3,12}(?: [A-Za-z0-9]{2,12}){3,7})[\"'`]|([a-z]{3,12}(?: [a-z0-9]{3,12}){3,7})\s*(?:\n|$))"
)
_PROSE = frozenset(
    (
        *(
            "the",
            "use",
            "and",
            "for",
            "must",
            "not",
            "your",
            "you",
            "with",
            "that",
            "this",
            "are",
            "was",
            "has",
            "have",
        ),
        *(
            "from",
            "will",
            "can",
            "none",
            "null",
            "string",
            "required",
            "optional",
            "words",
            "characters",
            "each",
            "enter",
        ),
    )
)


def _find_seed(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(_SEED).finditer(shape.data):
        yield Span(*match.span(1))


def _find_passphrase(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(_PASSPHRASE).finditer(shape.data):
        words = match[match.lastindex].decode("latin-1").lower().split()
        if _PROSE.isdisjoint(words):
            yield Span(*match.span(match.lastindex))


DETECTORS: tuple[Detector, ...] = (
    Detector(
        "password", "a password", (r"(?i)(?:phrase|words|mnemonic|seed)\b.{0,12} (?:[a-z]{3,8},? ){11}",), _find_seed
    ),
    Detector(
        "password", "a password", (r"(?i)(?:pass ?phrase|password)[\"'`*]{0,3}(?: is| was|:| =|=)",), _find_passphrase
    ),
)
