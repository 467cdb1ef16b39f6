"""Credentials in the places of protocols: in a URL, in an authorization header, on a command line."""

from base64 import b64decode
from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.secrets.placeholder import is_made_up, is_name, is_nobodys

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,30}://"
_IN_URL = (
    rf"{_SCHEME}(([^\s/@:\"'<>]{{0,100}}):([^\s/@\"'<>]{{1,200}}(?:@[^\s/@?\"'<>]{{1,100}}){{0,2}}))@[A-Za-z0-9\[_-]"
)
_HEADER = (
    r"(?i:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"'`]?(?:(?:basic|bearer|token|digest|apikey)\s+)?|\bbearer\s+|"
    r"\bbasic\s+)"
    r"([A-Za-z0-9+/=._~-]{8,})"
)
# "auth": "...", _auth=...: what Docker and npm keep of user and password.
_AUTH = r"(?i)(?:\b|_)auth[\"']?\s{0,2}[:=]\s{0,2}[\"']?([A-Za-z0-9+/]{12,256}={0,2})"
_ON_COMMAND_LINE = (
    r"(?:\bcurl\b[^\n]{0,120}? (?:-u|--user)[ =]|\bsshpass -p ?)[\"']?([^\s\"':]{0,100}:?[^\s\"':]{3,100})"
)
_SHORT = 16  # a word behind "bearer" or "basic" is not a token


def _in_url(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(_IN_URL).finditer(shape.data):
        start, end = match.span(1)
        user, password = match[2].decode("latin-1"), shape.text[match.start(3) : match.end(3)]
        if password[0] not in "$<{%*[" and "xxx" not in password.lower() and not is_nobodys(user, password):
            yield Span(start, end)


def _in_header(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(_HEADER).finditer(shape.data):
        value = match[1].decode("latin-1").rstrip(".")
        named = match[0][:13].lower() == b"authorization"
        looks_random = any(map(str.isdigit, value)) or (value != value.lower() and value.endswith("="))
        if not is_made_up(value) and not is_name(value) and (looks_random and (named or len(value) >= _SHORT)):
            start = match.start(1)
            yield Span(start, start + len(value))


def _in_auth(shape: ByteText) -> Iterator[Span]:
    """What is a user, a colon and a password in base64."""
    for match in compile_pattern(_AUTH).finditer(shape.data):
        try:
            user, colon, password = b64decode(match[1] + b"==").decode("ascii").partition(":")
        except ValueError:
            continue
        if colon and user.isprintable() and password.isprintable() and not is_nobodys(user, password):
            yield Span(*match.span(1))


def _on_command_line(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(_ON_COMMAND_LINE).finditer(shape.data):
        value = match[1].decode("latin-1")
        user, _, password = value.partition(":")
        if value[0] not in "$<{*" and ":$" not in value and not is_nobodys(user, password or user):
            yield Span(*match.span(1))


DETECTORS: tuple[Detector, ...] = (
    Detector("url_credentials", "credentials in a URL", (r"://[^\s/@]{0,100}:[^\s/@]{1,100}@",), _in_url),
    Detector("authorization", "an authorization header", (r"(?i)authorization|\bbearer\s|\bbasic\s",), _in_header),
    Detector("authorization", "an authorization header", (_AUTH,), _in_auth),
    Detector("authorization", "credentials of a command", (r"\bcurl\b|\bsshpass\b",), _on_command_line),
)
