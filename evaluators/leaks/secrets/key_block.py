"""PEM blocks: private keys and certificates, also with their line ends written out as in JSON."""

from collections.abc import Iterator
from functools import partial

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern

_LONGEST = 8_000  # characters between the first and the last line
_DASHES = "-----"
# Without its last line: what may still belong to it.
_BODY = r"^(?:[A-Za-z0-9+/=]{16,}|[A-Za-z-]+: [^\n\\]*|\s|\\[rn])*"

_CONTENT = r"[A-Za-z0-9+/=]{16}"  # without it the text only speaks of such a block


def _find(shape: ByteText, label: str) -> Iterator[Span]:
    for head in compile_pattern(rf"-----BEGIN {label}-----").finditer(shape.data):
        start, inside = head.span()
        end = _end(shape, inside)
        if compile_pattern(_CONTENT).search(shape.data[inside:end]):
            yield Span(start, end)


def _end(shape: ByteText, inside: int) -> int:
    """Behind the block's last line; where that is missing, behind all that looks like its content."""
    limit = inside + _LONGEST
    dashes = shape.text.find(_DASHES, inside, limit)
    if dashes >= 0 and shape.text.startswith("END ", dashes + len(_DASHES)):
        closing = shape.text.find(_DASHES, dashes + len(_DASHES), dashes + 80)
        return (closing if closing >= 0 else dashes) + len(_DASHES)
    return inside + int(compile_pattern(_BODY).search(shape.data[inside:limit]).end())


def _find_putty(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(r"PuTTY-User-Key-File-[0-9]: [^\n]*(?:\n[^\n]+){1,60}").finditer(shape.data):
        yield Span(*match.span())


_PRIVATE = r"(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?"
_CERTIFICATE = r"(?:TRUSTED |X509 )?CERTIFICATE"

DETECTORS: tuple[Detector, ...] = (
    Detector("private_key", "a private key", (r"PRIVATE KEY",), partial(_find, label=_PRIVATE)),
    Detector("private_key", "a private key", (r"PuTTY-User-Key-File",), _find_putty),
    Detector(
        "certificate", "a certificate", (r"BEGIN (?:TRUSTED |X509 )?CERTIFICATE",), partial(_find, label=_CERTIFICATE)
    ),
)
