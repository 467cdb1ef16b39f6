"""Passwords behind the name they go with: `login: admin / ...`, `user/pass: admin:...`, `user admin, pass ...`."""

import re
from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span, spaced_length
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.secrets.password import is_strong, opens

_USER, _PASS = r"(?:user(?:name)?|usr|uid)", r"(?:pass(?:word|wd)?|pwd?)"
_ABROAD = (
    r"zugangsdaten|anmeldedaten|identifiants?|credenciales|credenziali|credenciais|inloggegevens|dane logowania|"
    r"inloggningsuppgifter"
)
_BOTH = rf"(?:login|log in|credentials?|creds|{_ABROAD}|{_USER}\s?[/&+]\s?{_PASS})"
_PAIR = (
    rf"(?i)\b{_BOTH}\b[^\n]{{0,30}}?[:= ]\s{{0,2}}([a-z0-9_.@-]{{2,64}})\s?[:/]\s?"
    r"([^\s/\"',;]{6,64})(?:[\s\"',;.]|$)"
)
_EACH = (
    rf"(?i)\b(?:{_USER}|u|login)[ :=]{{1,3}}([a-z0-9_.@-]{{2,64}})[\s,;/|]{{1,4}}(?:and )?(?:{_PASS}|p)[ :=]{{1,3}}"
    r"([^\s\"',;]{6,64})(?:[\s\"',;.]|$)"
)
_ADDRESS = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f:.%]*")  # what an IPv6 address has behind its first group


def _find_pair(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(_PAIR).finditer(shape.data):
        start, value = _value(shape, *match.span(2))
        if opens(value, quoted=False) and not _ADDRESS.fullmatch(value):
            yield Span(start, start + len(value))


def _find_each(shape: ByteText) -> Iterator[Span]:
    """Both with their names, in words that prose has, too: only what is no word counts."""
    for match in compile_pattern(_EACH).finditer(shape.data):
        start, value = _value(shape, *match.span(2))
        if is_strong(value) and opens(value, quoted=False):
            yield Span(start, start + len(value))


def _value(shape: ByteText, start: int, end: int) -> tuple[int, str]:
    value = shape.text[start:end]
    return start, value[: spaced_length(value)]


DETECTORS: tuple[Detector, ...] = (
    Detector(
        *("password", "a password"),
        (rf"(?i)(?:login|log in|creds|credential|{_ABROAD})", rf"(?i){_USER}\s?[/&+]\s?p"),
        _find_pair,
    ),
    Detector("password", "a password", (rf"(?i)\b(?:{_USER}|u|login)[ :=]",), _find_each),
)
