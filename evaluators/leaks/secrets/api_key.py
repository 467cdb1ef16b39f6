"""Keys and tokens that their name gives away: `api_key = ...`, `"client_secret": "..."`, "my API key is ..."."""

import re
from collections.abc import Iterator
from math import log2

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted, Span
from evaluators.leaks.secrets.assigned import IS, QUOTED, SIGN, Assigned, assigned
from evaluators.leaks.secrets.placeholder import is_code, is_made_up

_SHORTEST = 12
_SHORTEST_SAID = 16  # where only prose names it
_LEAST_BITS = 2.8  # entropy of a character of a made key; words have less

_BOTH = r"(?:api|access|auth|secret|private|signing|encryption|master|license|account|app|bot|refresh|client|webhook)"
_NAME = rf"{_BOTH}[ _.-]?(?:key|token|secret)|apikey|key[ _.-]?base|credentials?|secret|token"
_BARE = r"([a-z0-9+/=_~-]{12,200})"
_ASSIGNED = rf"(?i)([a-z0-9_.-]{{0,40}})(?:{_NAME}){SIGN}(?:{QUOTED}|{_BARE})"
_SPOKEN = r"\b(?:(?:api|access|secret)[ _-]?(?:key|token)|secret|token)"
_SAID = rf"(?i){_SPOKEN}{IS}"
_BESIDE = rf"(?i){_SPOKEN} ([a-z0-9_-]{{20,200}})"

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
# Before "token" and "key": they open nothing.
_HARMLESS = frozenset(
    (
        *("csrf", "xsrf", "page", "next", "continuation", "sync", "cursor", "cancellation", "eos", "bos", "pad", "unk"),
        *("sep", "mask", "stop", "special", "max", "min", "num", "total", "input", "output", "prompt", "completion"),
        *(
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
        ),
    )
)


def entropy(text: str) -> float:
    """Shannon's, in bits a character."""
    return -sum(share * log2(share) for share in (text.count(c) / len(text) for c in set(text)))


def _opens(found: Assigned, shortest: int) -> bool:
    """Whether it is long and random enough to be a key."""
    value = found.value
    if len(value) < shortest or any(map(str.isspace, value)) or is_made_up(value):
        return False
    if value[0] in "$<{%&" or (not found.quoted and is_code(value)):
        return False
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and entropy(value) >= _LEAST_BITS


def _find_assigned(shape: Formatted) -> Iterator[Span]:
    for found in assigned(shape, _ASSIGNED):
        called = shape.text[found.end : found.end + 1] in ("(", ".", "[")
        words = _WORD.findall(found.match[1].decode("latin-1"))
        if not called and _HARMLESS.isdisjoint(map(str.lower, words)) and _opens(found, _SHORTEST):
            yield Span(found.start, found.end)


def _find_said(shape: Formatted) -> Iterator[Span]:
    for pattern in (_SAID, _BESIDE):
        for found in assigned(shape, pattern):
            if _opens(found, _SHORTEST_SAID):
                yield Span(found.start, found.end)


DETECTORS: tuple[Detector, ...] = (
    Detector("api_key", "an API key", (rf"(?i)(?:{_NAME})",), _find_assigned),
    Detector("api_key", "an API key", (rf"(?i)(?:{_SPOKEN})",), _find_said),
)
