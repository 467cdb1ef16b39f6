"""Stored password hashes, from which passwords can be guessed."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern

_B64 = r"[A-Za-z0-9./+=_-]"
_SHAPES = (
    r"\$2[abxy]?\$[0-9]{2}\$[A-Za-z0-9./]{53}",  # bcrypt
    rf"\$argon2(?:id|i|d)\$(?:v=[0-9]{{1,3}}\$)?m=[0-9]{{1,9}},t=[0-9]{{1,4}},p=[0-9]{{1,4}}\${_B64}{{8,}}\${_B64}{{16,}}",
    rf"\$(?:1|5|6|7|y|gy|apr1|sha1|md5|scrypt|"
    rf"pbkdf2(?:-sha[0-9]{{1,3}})?)\$(?:[a-z]{{1,8}}=[^$\s]{{1,32}}\$)?{_B64}{{2,64}}\${_B64}{{20,}}",
    rf"\bpbkdf2[_:](?:sha1|sha256|sha512)[$:][0-9]{{3,8}}[$:]{_B64}{{4,}}[$:]{_B64}{{20,}}",  # Django, Werkzeug
    rf"\b(?:scrypt|bcrypt_sha256|argon2):[0-9]{{1,8}}:[0-9]{{1,4}}:[0-9]{{1,4}}\${_B64}{{4,}}\${_B64}{{20,}}",
    r"\{S?(?:SHA|MD5|SHA256|SHA512)\}[A-Za-z0-9+/]{20,}={0,2}",  # LDAP
    r"\b[A-Za-z0-9_.-]{1,32}:[0-9]{1,6}:[0-9a-fA-F]{32}:[0-9a-fA-F]{32}:::",  # Windows
)
_NAMED = (
    r"(?i)(?:password|passwd|pwd|pass|passwort|user)[ _-]?(?:hash(?:ed)?|digest|md5|sha-?(?:1|256|512))"
    r"[\"'`*]{0,3}(?:\s{0,2}[:=|>]{1,2}\s{0,2}| is | )[\"'`*]{0,3}([0-9a-f]{32,128})\b"
)


def find(shape: ByteText) -> Iterator[Span]:
    """Each with its salt."""
    for match in compile_pattern("|".join(f"(?:{each})" for each in _SHAPES)).finditer(shape.data):
        yield Span(*match.span())
    for match in compile_pattern(_NAMED).finditer(shape.data):
        yield Span(*match.span(1))


DETECTORS: tuple[Detector, ...] = (
    Detector(
        *("password_hash", "a password's hash"),
        (
            r"\$(?:2[abxy]?|argon2[id]{1,2}|1|5|6|7|y|gy|apr1|sha1|md5|scrypt|pbkdf2[a-z0-9-]*)\$[A-Za-z0-9./=]",
            r"\b(?:pbkdf2|scrypt|bcrypt_sha256|argon2)[_:]",
            r"\{S?(?:SHA|MD5)[0-9]{0,3}\}[A-Za-z0-9+/]{20}",
            r":[0-9a-fA-F]{32}:::",
            r"(?i)(?:pass[a-z]{0,4}|pwd|user)[ _-]?(?:hash|digest|md5|sha)",
        ),
        find,
    ),
)
