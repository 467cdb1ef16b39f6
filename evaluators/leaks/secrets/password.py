"""Passwords that their name gives away: `password = ...`, `"pwd": "..."`, "the password is ...", a login with both."""

import re
from collections.abc import Iterator

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted, Span
from evaluators.leaks.patterns import compiled
from evaluators.leaks.secrets.assigned import BARE, IS, QUOTED, SIGN, assigned
from evaluators.leaks.secrets.placeholder import is_code

_SHORTEST, _LONGEST = 6, 128
_PIN = 4  # digits
_SPELT_OUT = 6  # letters: "password: 120463" is one, "pass: 120" counts

_WORD = r"pass(?:word|code|phrase)|passwort|kennwort|contrase.{1,2}a|mot de passe"
_NAME = rf"{_WORD}|passwd|\bpwd|_pwd|\bpass|_pass|\bpw|_pw|senha|wachtwoord|has\?o"  # the Polish l is no Latin-1
_ASSIGNED = rf"(?i)({_NAME})[0-9]?{SIGN}(?:{QUOTED}|{BARE})"
_SAID = rf"(?i)\b(?:{_WORD}|credentials?){IS}"
_BESIDE = r"(?i)\bpass(?:word|code|phrase) (?:\"([^\"\s]{6,64})\"|'([^'\s]{6,64})')"
_LOGIN = (
    r"(?i)\b(?:login|log in|credentials?|creds)\b[^\n]{0,30}?[:= ]\s{0,2}([a-z0-9_.@-]{2,64})\s?[:/]\s?"
    r"([^\s/\"',;]{6,64})(?:[\s\"',;.]|$)"
)
# Where Latin letters do not reach: Russian, Chinese, Japanese, Korean, Greek.
_ELSEWHERE = re.compile(
    r"(?:\u043f\u0430\u0440\u043e\u043b\u044c|\u5bc6\u7801|\u5bc6\u78bc|\u30d1\u30b9\u30ef\u30fc\u30c9|"
    r"\ube44\ubc00\ubc88\ud638|\u03ba\u03c9\u03b4\u03b9\u03ba\u03cc\u03c2)[\s:=\"'\u662f\u306f]{1,4}"
    r"([^\s\"',;\u3002\uff0c]{6,64})",
    re.IGNORECASE,
)

_PROSE = (
    *("password", "passwd", "secret", "token", "string", "none", "null", "true", "false", "required", "optional"),
    *("undefined", "input", "text", "hidden", "bearer", "basic", "incorrect", "correct", "invalid", "expired", "wrong"),
    *("encrypted", "hashed", "stored", "case-sensitive", "empty", "unset", "username", "user/password"),
)
_FILLERS = ("your", "<", "${", "{{", "xxxx", "****", "....", "placeholder", "redacted")
_VARIABLES = ("passw", "passphrase", "token", "credential", "secret", "param", "string", "field")


def _opens(value: str, quoted: bool) -> bool:
    """Whether it may open something: no word of prose, of code or of a form."""
    if not _SHORTEST <= len(value) <= _LONGEST or any(map(str.isspace, value)) or is_code(value) or _is_word(value):
        return False
    return quoted or _is_mixed(value)


def _is_word(value: str) -> bool:
    low = value.lower()
    if low.strip(".:!") in _PROSE or len(set(value)) == 1 or any(filler in low for filler in _FILLERS):
        return True
    return value.replace("_", "").isalpha() and any(word in low for word in _VARIABLES)


def _is_mixed(value: str) -> bool:
    """Whether it has two of letters, digits and signs, the end of a sentence aside."""
    core = value.rstrip(".!?")
    return sum((any(map(str.isdigit, core)), any(map(str.isalpha, core)), any(c in "!@#$%^&*?+" for c in core))) > 1


def _find_assigned(shape: Formatted) -> Iterator[Span]:
    for found in assigned(shape, _ASSIGNED):
        spelt_out = len(found.match[1]) >= _SPELT_OUT
        if _opens(found.value, found.quoted) or (found.value.isdigit() and spelt_out):
            yield Span(found.start, found.end)
    if not shape.text.isascii():
        for match in _ELSEWHERE.finditer(shape.text):
            if _is_mixed(match[1]):
                yield Span(*match.span(1))


def _find_said(shape: Formatted) -> Iterator[Span]:
    for pattern in (_SAID, _BESIDE):
        for found in assigned(shape, pattern):
            is_pin = found.value.isdigit() and len(found.value) >= _PIN
            if is_pin or _opens(found.value, found.quoted and pattern is _SAID):
                yield Span(found.start, found.end)


def _find_login(shape: Formatted) -> Iterator[Span]:
    for match in compiled(_LOGIN).finditer(shape.data):
        start, end = match.span(2)
        if _opens(shape.text[start:end], quoted=False):
            yield Span(start, end)


DETECTORS: tuple[Detector, ...] = (
    Detector("password", "a password", (rf"(?i)(?:{_NAME})", r"\?\?"), _find_assigned),
    Detector("password", "a password", (rf"(?i)(?:{_WORD}|credential)",), _find_said),
    Detector("password", "a password", (r"(?i)(?:login|log in|creds|credential)",), _find_login),
)
