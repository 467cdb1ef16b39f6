"""Keys and tokens that their name gives away: `api_key = ...`, `"client_secret": "..."`, "my API key is ..."."""

import re
from collections.abc import Iterator
from math import log2

from evaluators.leaks.detector import Detector
from evaluators.leaks.folded import KEY
from evaluators.leaks.formatted import Formatted, Span
from evaluators.leaks.secrets.assigned import ARGUMENT, CALL, IS, OF, QUOTED, SIGN, Assigned, assigned
from evaluators.leaks.secrets.placeholder import is_code, is_made_up, is_name, is_row

_SHORTEST = 12
_SHORTEST_SAID = 16  # where only prose names it
_SHORTEST_OF_LETTERS, _WORD_LENGTH = 20, 3
_LEAST_BITS = 2.8  # entropy of a character of a made key; words have less

_BOTH = (
    r"(?:api|access|auth|secret|private|signing|encryption|master|license|account|app|bot|refresh|client|webhook|"
    r"subscription|consumer|storage|session|deploy|service|server)"
)
# As spelt without accents: German, Dutch, the Nordic languages and Czech; French, Spanish, Italian, Portuguese, Polish,
# Russian.
_ABROAD = (
    r"\b(?:api|zugriffs|zugangs|geheim)[ _-]?(?:schlussel|sleutel|nyckel|nogle|nokkel|avain|klic|kluc|token)|"
    r"\b(?:clef?|clave|chiave|chave|klucz|kluc)[ _](?:(?:de|di|da|du)[ _]|d'|de l')?(?:api|acces[os]?|accesso|"
    r"secret[ae]?|"
    r"segreta|privad[ao]|dostepu|dostupa)|\bjeton|\btoken d(?:'|[ei] )acc?es[a-z]{0,2}"
)
_NAME = rf"{_BOTH}[ _.-]?(?:key|token|secret)|{_ABROAD}|apikey|key[ _.-]?base|credentials?|secret|token|(?:_|\b)pat\b"
_BARE = r"([a-z0-9+/=_~-]{12,})"
_ASSIGNED = (
    rf"(?:(?i)([a-z0-9_.-]{{0,40}})(?:{_NAME})(?:{OF})?(?:{SIGN})|{KEY}[^0-9A-Za-z\n]{{0,4}})(?i:{QUOTED}|{_BARE})"
)
_CALLED = rf"(?i){CALL}(?:{_NAME}){ARGUMENT}"
_SPOKEN = (
    r"(?:\b|_)(?:(?:api|access|secret|account|auth|storage|license|master|encryption|signing)[ _-]?(?:key|token)|"
    r"secret|token|authkey)"
)
_SAID = rf"(?i)(?:{_SPOKEN}|{_ABROAD}){IS}"
_BESIDE = rf"(?i)(?:(?:{_SPOKEN}|{_ABROAD})\s{{1,4}}|\b(?:use|with|this|the|my|your) key )([a-z0-9+/=_-]{{20,}})"
# With signs that no key of a provider has.
_SECRET = r"(?i)secret[\"']?\s?[:=]\s{0,4}[\"']?([^\s\"'`<>,;|&]{8,64})"
_SIGNS = frozenset("!#$%^*@?")
# Django's are of 50 characters, 14 of the alphabet's 50 are signs.
_ALL_SIGNS = frozenset("!@#$%^&*(-_=+)")
_SHORTEST_OF_SIGNS, _LEAST_SIGNS = 32, 5
_TEMPLATES = ("[", "{", "<", "\\", "$(", "%(")
_BRACKETS = frozenset("()[]{}")

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
# Before "token" and "key": they open nothing.
_HARMLESS = frozenset(
    [
        "csrf",
        "xsrf",
        "page",
        "next",
        "continuation",
        "sync",
        "cursor",
        "cancellation",
        "eos",
        "bos",
        "pad",
        "unk",
        "sep",
        "mask",
        "stop",
        "special",
        "max",
        "min",
        "num",
        "total",
        "input",
        "output",
        "prompt",
        "completion",
        "public",
        "first",
        "last",
        "cls",
        "primary",
        "foreign",
        "partition",
        "sort",
        "cache",
        "idempotency",
        "device",
    ]
)


def entropy(text: str) -> float:
    """Shannon's, in bits a character."""
    return -sum(share * log2(share) for share in (text.count(c) / len(text) for c in set(text)))


def _opens(found: Assigned, shortest: int) -> bool:
    """Whether it is long and random enough to be a key."""
    value = found.value
    if len(value) < shortest or any(map(str.isspace, value)) or is_made_up(value) or is_name(value) or is_row(value):
        return False
    if found.quoted and _is_of_signs(value):
        return True
    if value[0] in "$<{%&" or not _BRACKETS.isdisjoint(value) or (not found.quoted and is_code(value)):
        return False
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return (mixed or _is_random(value)) and entropy(value) >= _LEAST_BITS


def _is_random(value: str) -> bool:
    """Whether it is of letters alone, whose case changes more often than where words begin."""
    return (
        len(value) >= _SHORTEST_OF_LETTERS and value.isalpha() and len(value) < _WORD_LENGTH * len(_WORD.findall(value))
    )


def _is_of_signs(value: str) -> bool:
    """Whether it is long and has so many signs, and none as a template has them, that nobody wrote it."""
    template = any(mark in value for mark in _TEMPLATES)
    return len(value) >= _SHORTEST_OF_SIGNS and len(_ALL_SIGNS.intersection(value)) >= _LEAST_SIGNS and not template


def _find_assigned(shape: Formatted) -> Iterator[Span]:
    for found in assigned(shape, _ASSIGNED):
        is_call = shape.text[found.end : found.end + 1] in ("(", ".", "[")
        words = _WORD.findall((found.match[1] or b"").decode("latin-1"))
        if not is_call and _HARMLESS.isdisjoint(map(str.lower, words)) and _opens(found, _SHORTEST):
            yield Span(found.start, found.end)
    for found in assigned(shape, _CALLED):
        if _opens(found, _SHORTEST):
            yield Span(found.start, found.end)
    for found in assigned(shape, _SECRET):
        value = found.value
        mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not _SIGNS.isdisjoint(value)
        if mixed and not is_code(value) and not is_made_up(value) and value[0] not in _SIGNS:
            yield Span(found.start, found.end)


def _find_said(shape: Formatted) -> Iterator[Span]:
    for pattern in (_SAID, _BESIDE):
        for found in assigned(shape, pattern):
            if _opens(found, _SHORTEST_SAID):
                yield Span(found.start, found.end)


DETECTORS: tuple[Detector, ...] = (
    Detector("api_key", "an API key", (rf"(?i)(?:{_NAME})", KEY), _find_assigned),
    Detector(
        *("api_key", "an API key"),
        (rf"(?i)(?:{_SPOKEN}|{_ABROAD})", r"(?i)\b(?:use|with|this|the|my|your) key [a-z0-9+/=_-]{20}"),
        _find_said,
    ),
)
