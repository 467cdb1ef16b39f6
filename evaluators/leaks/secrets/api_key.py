"""Keys and tokens identified by a name: `api_key = ...`, `"client_secret": "..."`, "my API key is ..."."""

import re
from collections.abc import Iterator
from math import log2

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.folding import KEY
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.secrets.assignments import ARGUMENT, CALL, IS, OF, QUOTED, SIGN, Assignment, assignments
from ragtide.evaluators.leaks.secrets.placeholder import is_code, is_made_up, is_name, is_row

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
# What cookies bring back.
_SESSION = (
    r"j?session[_-]?id|phpsessid|connect\.sid=s%3a|connect\.sid|aspsessionid[a-z]*|asp\.net_sessionid|"
    r"(?:laravel|_rails|ci|)_session|sessid|(?:_|\b)sid\b"
)
_NAME = (
    rf"{_BOTH}[ _.-]?(?:key|token|secret)|{_ABROAD}|apikey|key[ _.-]?base|credentials?|secret|token|(?:_|\b)pat\b|"
    rf"{_SESSION}|(?-i:_KEY\b)"
)
_BARE = r"([a-z0-9+/=_~-]{12,})"
_ASSIGNED = (
    rf"(?:(?i)([a-z0-9_.-]{{0,40}})(?:{_NAME})(?:{OF})?(?:{SIGN})|{KEY}[^0-9A-Za-z\n]{{0,4}})(?i:{QUOTED}|{_BARE})"
)
_CALLED = rf"(?i){CALL}(?:{_NAME}){ARGUMENT}"
_SPOKEN = rf"(?:\b|_)(?:{_BOTH}[ _-]?(?:key|token)|secret|token|authkey|credentials?)"
_SAID = rf"(?i)(?:{_SPOKEN}|{_ABROAD}){IS}"
_BESIDE = (
    rf"(?i)(?:(?:{_SPOKEN}|{_ABROAD})(?: number| no\.?)?[*_:,\])}}`]{{0,3}}\s{{1,4}}[(\[<#{{`]{{0,2}} ?|"
    r"\b(?:use|with|this|the|my|your) key:? )([a-z0-9+/=_-]{20,})"
)
_BEHIND = (
    rf"(?i)\b([a-z0-9+/=_-]{{20,200}})(?:[\"'`]? (?:as|is) (?:the|your|my|our|his|her|their|"
    rf"an?)(?: [a-z-]{{2,12}}){{0,2}} |"
    rf" ?\()(?:{_SPOKEN}|{_ABROAD})"
)
# With signs that no key of a provider has.
_SECRET = r"(?i)secret[\"']?\s?[:=]\s{0,4}[\"']?([^\s\"'`<>,;|&]{8,64})"
_SIGNS = frozenset("!#$%^*@?")
# Django's are of 50 characters, 14 of the alphabet's 50 are signs.
_ALL_SIGNS = frozenset("!@#$%^&*(-_=+)")
_SHORTEST_OF_SIGNS, _LEAST_SIGNS = 32, 5
_TEMPLATES = ("[", "{", "<", "\\", "$(", "%(")
_BRACKETS = frozenset("()[]{}")

_CALLED_ON = r"^(?:[(\[]|\.[A-Za-z_])"  # a program's: token.value, get_key("a")
_WORD_BEFORE, _WORD_LONG = r"([A-Za-z]+)[ _-].?$", 16
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
        "registry",
        "lookup",
        "object",
        "row",
        "hash",
        "shard",
        "group",
        "translation",
        "config",
        "feature",
        "routing",
    ]
)


def entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    return -sum(share * log2(share) for share in (text.count(c) / len(text) for c in set(text)))


def _opens(found: Assignment, shortest: int) -> bool:
    """Whether it is long and random enough for a key."""
    value = found.value
    if len(value) < shortest or any(map(str.isspace, value)) or is_made_up(value) or is_name(value) or is_row(value):
        return False
    if found.quoted and _is_of_signs(value):
        return True
    if value[0] in "$<{%&" or not _BRACKETS.isdisjoint(value) or (not found.quoted and is_code(value)):
        return False
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return (mixed or _is_random(value)) and entropy(value) >= _LEAST_BITS


def _is_of_log(found: Assignment) -> bool:
    """Whether it is a session's number, as logs have it in each line, and not what a cookie brings back."""
    named = re.search(r"(?i)session[_-]?id|\bsid", found.match[0].decode("latin-1"))
    return named is not None and re.fullmatch("[0-9a-f-]+", found.value) is not None and b"JSESS" not in found.match[0]


def _is_random(value: str) -> bool:
    """Whether it is of letters alone, whose case changes more often than where words begin."""
    return (
        len(value) >= _SHORTEST_OF_LETTERS and value.isalpha() and len(value) < _WORD_LENGTH * len(_WORD.findall(value))
    )


def _is_of_signs(value: str) -> bool:
    """Whether it is long and has so many signs, and none as a template has them, that nobody wrote it."""
    template = any(mark in value for mark in _TEMPLATES)
    return len(value) >= _SHORTEST_OF_SIGNS and len(_ALL_SIGNS.intersection(value)) >= _LEAST_SIGNS and not template


def _find_assigned(shape: ByteText) -> Iterator[Span]:
    for found in assignments(shape, _ASSIGNED):
        is_call = compile_pattern(_CALLED_ON).search(shape.data[found.end : found.end + 2]) is not None
        words = _WORD.findall((found.match[1] or b"").decode("latin-1"))
        if is_call or not _HARMLESS.isdisjoint(map(str.lower, words)) or _is_of_log(found):
            continue
        if _opens(found, _SHORTEST):
            yield Span(found.start, found.end)
    for found in assignments(shape, _CALLED):
        if _opens(found, _SHORTEST):
            yield Span(found.start, found.end)
    for found in assignments(shape, _SECRET):
        value = found.value
        mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not _SIGNS.isdisjoint(value)
        if mixed and not is_code(value) and not is_made_up(value) and value[0] not in _SIGNS:
            yield Span(found.start, found.end)


def _find_said(shape: ByteText) -> Iterator[Span]:
    for pattern in (_SAID, _BESIDE, _BEHIND):
        for found in assignments(shape, pattern):
            first = found.match.start() + 1  # of "csrf token" the match begins at the blank
            before = compile_pattern(_WORD_BEFORE).search(shape.data[max(first - _WORD_LONG, 0) : first])
            harmless = before and before[1].decode("latin-1").lower() in _HARMLESS
            if not harmless and _opens(found, _SHORTEST_SAID):
                yield Span(found.start, found.end)


DETECTORS: tuple[Detector, ...] = (
    Detector("api_key", "an API key", (rf"(?i)(?:{_NAME})", KEY), _find_assigned),
    Detector(
        *("api_key", "an API key"),
        (rf"(?i)(?:{_SPOKEN}|{_ABROAD})", r"(?i)\b(?:use|with|this|the|my|your) key:? [a-z0-9+/=_-]{20}"),
        _find_said,
    ),
)
